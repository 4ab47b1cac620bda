"""The in-tree filters one by one: their rejections, reasons, and resolvability."""

from __future__ import annotations

import pytest

from policies import SchedulerRules, decide_filter, decide_preemption
from policies.kubernetes import releases
from policies.kubernetes.releases import NEWEST, RELEASES
from policies.kubernetes.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    equals_all,
    field_requirement,
    node_requirement,
)
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.kubernetes.storage import DeviceClaim, StorageKind
from policies.preemption.filtering import (
    IN_TREE,
    UnknownFilterError,
    filters_named,
    in_default_order,
    not_evaluated,
    run_pre_filters,
)
from policies.preemption.filtering.status import FEASIBLE, Rejection
from tests.builders import (
    LATE,
    MEASURED,
    holding,
    late_claim,
    node,
    on_nodes,
    pod,
    snapshot,
    toleration,
)
from tests.properties.engines import assert_agreement

GPU = "example.com/gpu"


def refusal(
    state: NodeState, asking: Pod, *filters: str, release: str = NEWEST.name
) -> Rejection | None:
    """Return the rejection of a node by ``filters``, by default by all."""
    chosen = filters_named(filters) if filters else IN_TREE
    cluster = Snapshot({state.node.name: state})
    return run_pre_filters(asking, cluster, RELEASES[release], chosen).evaluate(state)


def reason(rejection: Rejection | None) -> tuple[str, bool] | None:
    return None if rejection is None else (str(rejection), rejection.resolvable)


# NodeUnschedulable

CORDONED = node(unschedulable=True)
CORDON_KEY = "node.kubernetes.io/unschedulable"


def test_a_cordoned_node_is_unresolvable() -> None:
    found = refusal(holding(CORDONED), pod(), "NodeUnschedulable")
    assert reason(found) == ("node(s) were unschedulable", False)
    assert refusal(holding(node()), pod(), "NodeUnschedulable") is None


@pytest.mark.parametrize(
    ("tolerated", "fits"),
    [
        (toleration(CORDON_KEY, "Exists", "", "NoSchedule"), True),
        (toleration(CORDON_KEY, "Exists"), True),
        (toleration(operator="Exists"), True),
        (toleration(CORDON_KEY, "Equal", ""), True),
        (toleration(CORDON_KEY, "Equal", "yes"), False),
        (toleration(CORDON_KEY, "Exists", "", "NoExecute"), False),
        (toleration("gpu", "Exists"), False),
    ],
)
def test_a_pod_that_tolerates_the_cordon_ignores_it(tolerated: object, *, fits: bool) -> None:
    asking = pod(tolerations=(tolerated,))
    assert (refusal(holding(CORDONED), asking, "NodeUnschedulable") is None) is fits


# NodeName


def test_a_pod_that_names_a_node_fits_no_other() -> None:
    asking = pod(on="node-2")
    found = refusal(holding(node("node-1")), asking, "NodeName", release="1.36")
    assert reason(found) == ("node(s) didn't match the requested node name", False)
    found = refusal(holding(node("node-1")), asking, "NodeName")
    assert reason(found) == ("node(s) didn't satisfy plugin(s) [NodeName]", False)
    assert refusal(holding(node("node-2")), asking, "NodeName") is None
    assert refusal(holding(node("node-1")), pod(), "NodeName") is None


# TaintToleration

TAINTED = node(taints=["soft:PreferNoSchedule", "gpu=yes:NoSchedule", "old:NoExecute"])


@pytest.mark.parametrize(
    ("release", "message"),
    [
        ("1.33", "node(s) had untolerated taint {gpu: yes}"),
        ("1.34", "node(s) had untolerated taint(s)"),
    ],
)
def test_the_first_untolerated_taint_has_the_message_of_the_release(
    release: str, message: str
) -> None:
    found = refusal(holding(TAINTED), pod(), "TaintToleration", release=release)
    assert reason(found) == (message, False)


def test_every_taint_that_forbids_must_be_tolerated() -> None:
    gpu, old = toleration("gpu", "Exists"), toleration("old", "Exists")
    found = refusal(holding(TAINTED), pod(tolerations=(gpu,)), "TaintToleration", release="1.33")
    assert reason(found) == ("node(s) had untolerated taint {old: }", False)
    assert refusal(holding(TAINTED), pod(tolerations=(gpu, old)), "TaintToleration") is None


NUMERIC_TOLERATIONS = "TaintTolerationComparisonOperators"


@pytest.mark.parametrize("enabled", [False, True], ids=["off", "on"])
def test_a_numeric_toleration_counts_only_with_its_gate(*, enabled: bool) -> None:
    aged = snapshot(node("aged", taints=["age=5:NoSchedule"]))
    asking = pod(tolerations=(toleration("age", "Gt", "4"),))
    rules = SchedulerRules(releases.release("1.37", {NUMERIC_TOLERATIONS: enabled}))
    assert (assert_agreement(asking, aged, rules).rejected["aged"] == FEASIBLE) is enabled


def test_a_prefer_no_schedule_taint_rejects_no_pod() -> None:
    soft = holding(node(taints=["soft:PreferNoSchedule"]))
    assert refusal(soft, pod(), "TaintToleration") is None


# NodeAffinity

MISMATCH = ("node(s) didn't match Pod's node affinity/selector", False)
IN_A = NodeSelectorTerm(labels=(node_requirement("zone", "In", ["a"]),))


def test_the_node_selector_requires_all_its_labels() -> None:
    asking = pod(node_selector=equals_all({"zone": "a", "disk": "ssd"}))
    fitting = holding(node(labels={"zone": "a", "disk": "ssd", "more": "yes"}))
    assert refusal(fitting, asking, "NodeAffinity") is None
    assert reason(refusal(holding(node(labels={"zone": "a"})), asking, "NodeAffinity")) == MISMATCH


def test_the_node_selector_and_the_affinity_must_both_match() -> None:
    asking = pod(node_selector=equals_all({"disk": "ssd"}), node_affinity=NodeSelector((IN_A,)))
    for labels, fits in (
        ({"zone": "a", "disk": "ssd"}, True),
        ({"zone": "a"}, False),
        ({"disk": "ssd"}, False),
    ):
        found = refusal(holding(node(labels=labels)), asking, "NodeAffinity")
        assert (found is None) is fits


def test_an_affinity_without_terms_fits_nowhere() -> None:
    found = refusal(holding(node()), pod(node_affinity=NodeSelector()), "NodeAffinity")
    assert reason(found) == MISMATCH


def test_only_the_named_nodes_are_examined() -> None:
    asking = pod(node_affinity=on_nodes("node-1", "node-3"))
    assert refusal(holding(node("node-1")), asking, "NodeAffinity") is None
    found = refusal(holding(node("node-2")), asking, "NodeAffinity")
    assert reason(found) == ("node(s) didn't satisfy plugin(s) [NodeAffinity]", False)


def test_a_contradiction_refuses_every_node_at_once() -> None:
    names = (
        field_requirement("metadata.name", "In", ["node-1"]),
        field_requirement("metadata.name", "In", ["node-2"]),
    )
    asking = pod(node_affinity=NodeSelector((NodeSelectorTerm(fields=names),)))
    # Even a node that an earlier filter would refuse otherwise: nothing is looked at.
    found = refusal(holding(node("node-1", unschedulable=True)), asking)
    assert reason(found) == ("pod affinity terms conflict", False)


# NodePorts

TAKEN = ("node(s) didn't have free ports for the requested pod ports", True)


@pytest.mark.parametrize(
    ("requested", "used", "conflict"),
    [
        ("80", "80", True),
        ("80", "81", False),
        ("80", "UDP:80", False),
        ("UDP:53", "UDP:53", True),
        ("SCTP:53", "UDP:53", False),
        ("10.0.0.1:TCP:80", "10.0.0.1:TCP:80", True),
        ("10.0.0.1:TCP:80", "10.0.0.2:TCP:80", False),
        ("10.0.0.1:TCP:80", "0.0.0.0:TCP:80", True),
        ("0.0.0.0:TCP:80", "10.0.0.1:TCP:80", True),
        ("0.0.0.0:UDP:80", "10.0.0.1:TCP:80", False),
    ],
)
def test_host_ports_conflict_by_protocol_port_and_address(
    requested: str, used: str, *, conflict: bool
) -> None:
    state = holding(node(), pod("resident", ports=[used]))
    found = refusal(state, pod(ports=[requested]), "NodePorts")
    assert reason(found) == (TAKEN if conflict else None)


def test_one_port_that_is_taken_is_enough() -> None:
    state = holding(node(), pod("resident", ports=[81]))
    assert reason(refusal(state, pod(ports=[80, 81]), "NodePorts")) == TAKEN


def test_a_pod_without_host_ports_has_no_port_filter() -> None:
    assert refusal(holding(node(), pod(ports=[80])), pod(), "NodePorts") is None


# NodeResourcesFit


def fit(asking: Pod, *residents: Pod, release: str = NEWEST.name) -> tuple[str, bool] | None:
    state = holding(
        node(cpu="4", memory="8Gi", storage="10Gi", others={GPU: "2"}, pods=3), *residents
    )
    return reason(refusal(state, asking, "NodeResourcesFit", release=release))


@pytest.mark.parametrize(
    ("asking", "resident", "message"),
    [
        (pod(cpu="4"), pod(), None),
        (pod(cpu="2"), pod(cpu="2"), None),
        (pod(cpu="2001m"), pod(cpu="2"), "Insufficient cpu"),
        (pod(memory="4Gi"), pod(memory="5Gi"), "Insufficient memory"),
        (pod(storage="6Gi"), pod(storage="5Gi"), "Insufficient ephemeral-storage"),
        (pod(others={GPU: "1"}), pod(others={GPU: "2"}), f"Insufficient {GPU}"),
        (
            pod(cpu="4", memory="8Gi", others={GPU: "1"}),
            pod(cpu="1", memory="1", others={GPU: "2"}),
            f"Insufficient cpu, Insufficient memory, Insufficient {GPU}",
        ),
        (pod(), pod(cpu="400", memory="800Gi"), None),
    ],
)
def test_every_resource_that_is_short_is_named(
    asking: Pod, resident: Pod, message: str | None
) -> None:
    assert fit(asking, resident) == (None if message is None else (message, True))


def test_the_number_of_pods_is_counted_first() -> None:
    full = [pod("a", cpu="1"), pod("b", cpu="1"), pod("c", cpu="1")]
    assert fit(pod(), *full) == ("Too many pods", True)
    assert fit(pod(cpu="2"), *full) == ("Too many pods, Insufficient cpu", True)
    assert fit(pod(cpu="1"), *full[:2]) is None


@pytest.mark.parametrize(("release", "resolvable"), [("1.33", True), ("1.34", False)])
@pytest.mark.parametrize(
    ("asking", "message"),
    [
        (pod(cpu="4001m"), "Insufficient cpu"),
        (pod(memory="9Gi"), "Insufficient memory"),
        (pod(storage="11Gi"), "Insufficient ephemeral-storage"),
        (pod(others={GPU: "3"}), f"Insufficient {GPU}"),
        (pod(others={"example.com/none": "1"}), "Insufficient example.com/none"),
    ],
)
def test_a_request_above_the_whole_node_is_unresolvable_since_1_34(
    asking: Pod, message: str, release: str, *, resolvable: bool
) -> None:
    assert fit(asking, release=release) == (message, resolvable)


def test_one_unresolvable_resource_makes_the_node_unresolvable() -> None:
    message = "Insufficient cpu, Insufficient memory"
    busy = pod(memory="7Gi")
    assert fit(pod(cpu="5", memory="2Gi"), busy) == (message, False)
    assert fit(pod(cpu="4", memory="2Gi"), busy, pod(cpu="1")) == (message, True)


# All of them


def test_the_first_filter_in_kube_schedulers_order_gives_the_reason() -> None:
    hostile = holding(
        node("node-1", cpu="1", unschedulable=True, taints=["gpu=yes:NoSchedule"]), pod(ports=[80])
    )
    asking = pod(on="node-2", cpu="1", node_selector=equals_all({"zone": "a"}), ports=[80])
    names = [each.name for each in in_default_order(IN_TREE, RELEASES["1.36"])]
    reasons = [
        reason(refusal(hostile, asking, *names[start:], release="1.36")) for start in range(5)
    ]
    assert [reason[0] for reason in reasons if reason] == [
        "node(s) were unschedulable",
        "node(s) didn't match the requested node name",
        "node(s) had untolerated taint(s)",
        "node(s) didn't match Pod's node affinity/selector",
        "node(s) didn't have free ports for the requested pod ports",
    ]


def test_filters_are_found_by_name_and_come_in_kube_schedulers_order() -> None:
    assert filters_named(["NodeResourcesFit", "NodeName"]) == (IN_TREE[0], IN_TREE[6])
    assert filters_named([]) == ()


def test_an_error_for_an_unknown_filter_has_the_known_ones() -> None:
    with pytest.raises(UnknownFilterError) as caught:
        filters_named(["NodeName", "NodeAffection"])
    assert "'NodeAffection'" in str(caught.value)
    assert all(each.name in str(caught.value) for each in IN_TREE)


def test_filters_that_cannot_be_evaluated_are_named() -> None:
    moment = snapshot(late_claim("data"), LATE, MEASURED, unknown=[StorageKind.CAPACITIES])
    asking = pod(volumes=["data"])
    assert not_evaluated(asking, moment, NEWEST) == {"VolumeBinding"}
    assert not_evaluated(asking, moment, NEWEST, filters_named(["VolumeZone"])) == frozenset()
    assert not_evaluated(pod(), moment, NEWEST) == frozenset()


def test_filters_after_the_one_that_refuses_every_node_do_not_have_to_be_evaluated() -> None:
    unlisted = [StorageKind.VOLUMES, StorageKind.CSI_NODES]
    cluster = snapshot(node("node-1"), unknown=unlisted)
    assert not_evaluated(pod(volumes=["missing"]), cluster, NEWEST) == {"NodeVolumeLimits"}
    found = decide_filter(pod(volumes=["missing"]), cluster, SchedulerRules(NEWEST))
    assert str(found.conflict) == 'persistentvolumeclaim "missing" not found'
    assert found.not_evaluated == frozenset()


def test_a_filter_before_the_one_that_refuses_every_node_may_not_be_evaluated() -> None:
    waiting = late_claim("data"), LATE, MEASURED
    cluster = snapshot(node("node-1"), *waiting, unknown=[StorageKind.CAPACITIES])
    asking = pod(volumes=["data"], devices=[DeviceClaim("gpu", "missing")])
    found = decide_filter(asking, cluster, SchedulerRules(RELEASES["1.37"]))
    assert found.conflict is not None
    assert found.not_evaluated == {"VolumeBinding"}


# NodeDeclaredFeatures

ALL_RESTART = "RestartAllContainersOnContainerExits"


@pytest.mark.parametrize(
    ("required", "declared", "release", "fits"),
    [
        ([ALL_RESTART], [], "1.35", True),
        ([ALL_RESTART], [], "1.36", False),
        ([ALL_RESTART], ["GuaranteedQoSPodCPUResize"], "1.37", False),
        ([ALL_RESTART], ["GuaranteedQoSPodCPUResize", ALL_RESTART], "1.37", True),
        ([ALL_RESTART, "VolumeBindMountOptions"], [ALL_RESTART], "1.37", False),
        ([], [], "1.37", True),
    ],
)
def test_a_node_has_to_declare_the_features_that_a_pod_requires(
    required: list[str], declared: list[str], release: str, *, fits: bool
) -> None:
    asking = pod(required_features=frozenset(required))
    state = holding(node(declared_features=frozenset(declared)))
    found = refusal(state, asking, "NodeDeclaredFeatures", release=release)
    rejected = ("node(s) didn't match Pod's required features", False)
    assert reason(found) == (None if fits else rejected)


def test_a_full_node_without_the_feature_has_the_status_of_an_earlier_filter() -> None:
    asking = pod(cpu="1", required_features=frozenset([ALL_RESTART]))
    found = refusal(holding(node(cpu="1"), pod("other", cpu="1")), asking)
    assert reason(found) == ("Insufficient cpu", True)


def test_preemption_evicts_nobody_on_a_node_without_the_feature() -> None:
    cluster = snapshot(
        node("old", cpu="1"),
        node("new", cpu="1", declared_features=frozenset([ALL_RESTART])),
        pod("small", on="old", cpu="1"),
        pod("large", on="new", cpu="1", priority=5),
    )
    asking = pod("vip", cpu="1", priority=10, required_features=frozenset([ALL_RESTART]))
    decision = decide_preemption(asking, cluster, SchedulerRules(NEWEST))
    assert list(decision.candidates) == ["new"]
