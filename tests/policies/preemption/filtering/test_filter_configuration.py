"""The in-tree filters as a kube-scheduler's own configuration changes them."""

from __future__ import annotations

import pytest

from policies import SchedulerRules, decide_filter, decide_preemption
from policies.kubernetes.default_selector import REPLICA_SET, SERVICE, PodOwner
from policies.kubernetes.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    SpreadConstraint,
    equals_all,
    node_requirement,
)
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.kubernetes.storage import DeviceClaim, ResourceClaim
from policies.preemption.filtering import (
    IN_TREE,
    FilterSettings,
    UnknownFilterError,
    configured_filters,
    filters_named,
    reads_workloads,
)
from tests.builders import node, on_nodes, pod, snapshot, workload
from tests.properties.engines import fit_by_node, victims_by_node

GPU = "example.com/gpu"
DISK = "kubernetes.io/disk"
WEB = {"app": "web"}


def outcome(settings: FilterSettings, asking: Pod, cluster: Snapshot) -> dict[str, str]:
    return fit_by_node(asking, cluster, SchedulerRules(filters=configured_filters(settings)))


def test_without_settings_they_are_the_defaults() -> None:
    assert configured_filters(FilterSettings()) == IN_TREE
    assert not reads_workloads(IN_TREE)


def test_settings_change_neither_their_names_nor_their_order() -> None:
    changed = configured_filters(FilterSettings(ignored=frozenset([GPU])))
    assert changed != IN_TREE
    assert [each.name for each in changed] == [each.name for each in IN_TREE]


def test_some_of_the_configured_ones_can_be_taken_by_name() -> None:
    changed = configured_filters(FilterSettings(ignored=frozenset([GPU])))
    assert filters_named(["NodeResourcesFit"], changed) == tuple(
        each for each in changed if each.name == "NodeResourcesFit"
    )
    with pytest.raises(UnknownFilterError):
        filters_named(["NodeAffection"], changed)


def test_unevaluated_filters_are_reported_for_configured_filters_too() -> None:
    asking = pod(devices=[DeviceClaim("gpu", "gpu")])
    rules = SchedulerRules(filters=configured_filters(FilterSettings(ignored=frozenset([GPU]))))
    waiting = ResourceClaim("default", "gpu", allocated=True, conditional=True)
    cluster = snapshot(node("node-1"), waiting)
    assert decide_filter(asking, cluster, rules).not_evaluated == {"DynamicResources"}
    assert not decide_filter(
        asking, cluster, SchedulerRules(filters=rules.filters[:3])
    ).not_evaluated


# NodeResourcesFit


@pytest.mark.parametrize(
    ("settings", "resource", "found"),
    [
        (FilterSettings(), GPU, f"Insufficient {GPU}"),
        (FilterSettings(ignored=frozenset([GPU])), GPU, "fits"),
        (FilterSettings(ignored=frozenset(["example.com/fpga"])), GPU, f"Insufficient {GPU}"),
        (FilterSettings(ignored_groups=frozenset(["example.com"])), GPU, "fits"),
        (FilterSettings(ignored_groups=frozenset(["example"])), GPU, f"Insufficient {GPU}"),
        # Only extended resources can be ignored.
        (FilterSettings(ignored=frozenset([DISK])), DISK, f"Insufficient {DISK}"),
        (FilterSettings(ignored_groups=frozenset(["kubernetes.io"])), DISK, f"Insufficient {DISK}"),
        (
            FilterSettings(ignored=frozenset(["hugepages-2Mi"]), ignored_groups=frozenset([""])),
            "hugepages-2Mi",
            "Insufficient hugepages-2Mi",
        ),
    ],
)
def test_ignored_resources_are_not_counted(
    settings: FilterSettings, resource: str, found: str
) -> None:
    asking = pod(others={resource: "1"})
    assert outcome(settings, asking, snapshot(node("node-1"))) == {"node-1": found}


def test_cpu_cannot_be_ignored() -> None:
    settings = FilterSettings(ignored=frozenset(["cpu"]), ignored_groups=frozenset(["cpu", ""]))
    cluster = snapshot(node("node-1", cpu="1"))
    assert outcome(settings, pod(cpu="2"), cluster) == {"node-1": "Insufficient cpu"}


def test_no_pod_is_preempted_for_an_ignored_resource() -> None:
    cluster = snapshot(
        node("node-1", cpu="2", others={GPU: "1"}),
        pod("gpu", on="node-1", cpu="1", others={GPU: "1"}, priority=1),
        pod("web", on="node-1", cpu="1"),
    )
    asking = pod("vip", cpu="1", others={GPU: "1"}, priority=9)
    counting = decide_preemption(asking, cluster).candidates["node-1"]
    ignoring = decide_preemption(
        asking,
        cluster,
        SchedulerRules(filters=configured_filters(FilterSettings(ignored=frozenset([GPU])))),
    ).candidates["node-1"]
    assert [each.name for each in counting.victims.pods] == ["gpu"]
    assert [each.name for each in ignoring.victims.pods] == ["web"]


# NodeAffinity

ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
OWN = "node(s) didn't match Pod's node affinity/selector"
POOLS = snapshot(
    node("both", labels={"pool": "a", "disk": "ssd"}),
    node("pool", labels={"pool": "a"}),
    node("disk", labels={"disk": "ssd"}),
    node("none"),
)


def asks_for(key: str, value: str) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm((node_requirement(key, "In", [value]),)),))


def test_the_added_affinity_comes_before_the_pods_own() -> None:
    settings = FilterSettings(added_affinity=asks_for("pool", "a"))
    for asking in (
        pod(node_affinity=asks_for("disk", "ssd")),
        pod(node_selector=equals_all({"disk": "ssd"})),
    ):
        assert outcome(settings, asking, POOLS) == {
            "both": "fits",
            "pool": OWN,
            "disk": ENFORCED,
            "none": ENFORCED,
        }


def test_the_added_affinity_applies_to_every_pod_and_is_unresolvable() -> None:
    settings = FilterSettings(added_affinity=asks_for("pool", "a"))
    rules = SchedulerRules(filters=configured_filters(settings))
    rejected = decide_filter(pod(), POOLS, rules).rejected
    assert {name: str(why) for name, why in rejected.items()} == {
        "disk": ENFORCED,
        "none": ENFORCED,
    }
    assert not any(why.resolvable for why in rejected.values())


def test_an_added_affinity_without_terms_matches_no_node() -> None:
    found = outcome(FilterSettings(added_affinity=NodeSelector()), pod(), POOLS)
    assert set(found.values()) == {ENFORCED}


def test_the_pods_own_node_names_limit_the_nodes() -> None:
    """An added affinity does not limit the nodes, even if it names nodes."""
    skipped = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
    asking = pod(node_affinity=on_nodes("pool"))
    assert outcome(FilterSettings(added_affinity=on_nodes("both")), asking, POOLS) == {
        "both": skipped,
        "pool": ENFORCED,
        "disk": skipped,
        "none": skipped,
    }
    found = outcome(FilterSettings(added_affinity=on_nodes("both")), pod(), POOLS)
    assert found == {"both": "fits", **dict.fromkeys(("pool", "disk", "none"), ENFORCED)}


# PodTopologySpread

SKEWED = "node(s) didn't match pod topology spread constraints"
SPREAD = FilterSettings(default_spread=(SpreadConstraint(1, "zone", None),))
SERVED = workload(SERVICE, "web", WEB)
OWNED = workload(REPLICA_SET, "web-5d4", WEB)


def zones(*pods: Pod) -> Snapshot:
    """Build nodes in the zones a and b, two web pods in a, and objects that select pods."""
    return snapshot(
        node("a", labels={"zone": "a"}),
        node("b", labels={"zone": "b"}),
        pod("a-0", on="a", labels=WEB),
        pod("a-1", on="a", labels=WEB),
        *pods,
        workloads=[SERVED, OWNED, workload(SERVICE, "all", {}, namespace="other")],
    )


SOFT_OF_ITS_OWN = pod(labels=WEB, soft_spread=True)
LAX_OF_ITS_OWN = pod(
    labels=WEB, spread=(SpreadConstraint(9, "zone", LabelSelector(equals_all(WEB))),)
)


@pytest.mark.parametrize(
    ("asking", "fits_a"),
    [
        (pod(labels=WEB), False),
        (pod(controller=PodOwner(REPLICA_SET, "web-5d4")), False),
        (pod(controller=PodOwner(REPLICA_SET, "gone")), True),
        (pod(labels=WEB, controller=PodOwner(REPLICA_SET, "web-5d4")), False),
        (pod(labels={"app": "db"}), True),
        (pod(labels=WEB, namespace="other"), True),
        (SOFT_OF_ITS_OWN, True),
        (LAX_OF_ITS_OWN, True),
    ],
)
def test_defaults_spread_selected_pods_without_own_constraints(
    asking: Pod, *, fits_a: bool
) -> None:
    found = outcome(SPREAD, asking, zones())
    assert found["b"] == "fits"
    assert (found["a"] == "fits") is fits_a


def test_a_pod_that_its_controller_selects_by_others_labels_is_not_counted_itself() -> None:
    """Zone a has two pods and b none; a third that does not count may be added at skew 2."""
    three = FilterSettings(default_spread=(SpreadConstraint(2, "zone", None),))
    owned = pod(controller=PodOwner(REPLICA_SET, "web-5d4"))
    assert outcome(three, owned, zones())["a"] == "fits"
    assert outcome(three, pod(labels=WEB), zones())["a"] == SKEWED


def test_defaults_follow_removed_victims() -> None:
    rules = SchedulerRules(filters=configured_filters(SPREAD))
    cluster = zones(pod("full", on="b", cpu="100", priority=99))
    decision = decide_preemption(pod("vip", labels=WEB, cpu="1", priority=9), cluster, rules)
    assert victims_by_node(decision) == {"a": ["a-0", "a-1"]}


def test_only_defaults_need_to_know_what_selects_pods() -> None:
    assert reads_workloads(configured_filters(SPREAD))
    assert not reads_workloads(configured_filters(FilterSettings(ignored=frozenset([GPU]))))
