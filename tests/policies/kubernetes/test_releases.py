"""The table of releases, with a small cluster for every rule that changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise

import pytest
from msgspec.structs import replace

from extender.kube.decoders.pods import decode_pod
from extender.protocol.preempt_verb import guardrail_violation
from policies import PreemptionDecision, SchedulerRules, decide_preemption, post_filter
from policies.kubernetes.feature_gates import STAGES
from policies.kubernetes.releases import NEWEST, RELEASES, Release, UnknownReleaseError, release
from policies.kubernetes.snapshot import Snapshot
from policies.preemption.decision import VictimSet
from policies.preemption.filtering import run_pre_filters
from policies.preemption.filtering.status import Code, FilterDecision, refused
from policies.preemption.reference_engine import filter_nodes, filter_with_terminating_pods
from policies.preemption.victim_units import victim_units
from tests.builders import (
    Document,
    budget,
    container_json,
    encoded,
    node,
    on_nodes,
    pod,
    pod_group,
    pod_json,
    snapshot,
)
from tests.policies.release_changes import STORAGE_CHANGES, Change


@pytest.mark.parametrize("version", ["1.34", "v1.34", "1.34.2", "v1.34.0-rc.1"])
def test_a_release_is_found_by_its_minor_version(version: str) -> None:
    assert release(version) is RELEASES["1.34"]


@pytest.mark.parametrize("version", ["", "1", "1.29", "1.99", "2.30", "newest", "v"])
def test_an_error_for_an_unknown_release_has_the_known_ones(version: str) -> None:
    with pytest.raises(UnknownReleaseError) as caught:
        release(version)
    assert repr(version) in str(caught.value)
    assert all(name in str(caught.value) for name in RELEASES)


def test_the_newest_release_is_the_last_of_the_table() -> None:
    assert list(RELEASES) == [f"1.{minor}" for minor in range(30, 39)]
    assert RELEASES["1.38"] is NEWEST


# What each rule changes

WEB = {"app": "web"}
PREEMPTOR = pod("vip", cpu="1", priority=100)


def decided(release: Release, cluster: Snapshot) -> PreemptionDecision:
    return decide_preemption(PREEMPTOR, cluster, SchedulerRules(release))


def message(release: Release) -> str:
    """Return the message if preemption does not help."""
    return decided(
        release, snapshot(node(cpu="1"), pod("peer", on="node-1", cpu="1", priority=100))
    ).message


def room_beside(resident: Document, cores: int) -> Callable[[Release], bool]:
    """Return whether a core is free beside a resident, on a node of so many."""

    def free(release: Release) -> bool:
        there = decode_pod(encoded(resident), release)
        cluster = snapshot(node(cpu=str(cores)), there)
        return bool(filter_nodes(pod(cpu="1"), cluster, SchedulerRules(release)).feasible)

    return free


def container(name: str, asks: int) -> Document:
    return container_json(name, {"cpu": str(asks)})


def reported(name: str, amount: int) -> Document:
    amounts = {"cpu": str(amount)}
    return {"name": name, "allocatedResources": amounts, "resources": {"requests": amounts}}


GROWN = pod_json(
    on="node-1",
    containers=[container("main", 1)],
    status={"containerStatuses": [reported("main", 2)]},
)
SHIFTED = pod_json(
    on="node-1",
    containers=[container("a", 1), container("b", 2)],
    status={"containerStatuses": [reported("a", 2), reported("b", 1)]},
)
POD_LEVEL = pod_json(
    on="node-1", containers=[container("main", 1)], spec={"resources": {"requests": {"cpu": "2"}}}
)
GROWN_POD_LEVEL = pod_json(
    on="node-1",
    containers=[container("main", 1)],
    spec={"resources": {"requests": {"cpu": "2"}}},
    status={"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "3"}},
)


def sidecars_port_is_taken(release: Release) -> bool:
    sidecar = container_json("proxy", ports=[{"hostPort": 80}], restartPolicy="Always")
    resident = pod_json(on="node-1", spec={"initContainers": [sidecar]})
    cluster = snapshot(node(), decode_pod(encoded(resident), release))
    return not filter_nodes(pod(ports=[80]), cluster, SchedulerRules(release)).feasible


def refused_by_a_taint(release: Release) -> str:
    cluster = snapshot(node(taints=["gpu=yes:NoSchedule"]))
    return str(filter_nodes(pod(), cluster, SchedulerRules(release)).rejected["node-1"])


def fits_a_node_without_a_required_feature(release: Release) -> bool:
    asking = pod(required_features=frozenset(["RestartAllContainersOnContainerExits"]))
    return bool(filter_nodes(asking, snapshot(node()), SchedulerRules(release)).feasible)


def tried_for_more_than_there_is(release: Release) -> bool:
    cluster = snapshot(node(cpu="1"), pod("web", on="node-1"))
    found = filter_nodes(pod(cpu="2"), cluster, SchedulerRules(release)).rejected["node-1"]
    return found.resolvable


def said_of_unexamined_nodes(release: Release) -> str:
    asking = pod(node_affinity=on_nodes("node-2"))
    return decide_preemption(asking, snapshot(node()), SchedulerRules(release)).message.split(
        " ", 4
    )[-1]


def broken_budgets(*matches: dict[str, str]) -> Callable[[Release], int]:
    """Count the victims that break a budget, if one labelled app and tier and one app go."""

    def count(release: Release) -> int:
        cluster = snapshot(
            node(cpu="2"),
            pod("both", on="node-1", cpu="1", labels={**WEB, "tier": "front"}, priority=2),
            pod("one", on="node-1", cpu="1", labels=WEB, priority=1),
            *(budget(f"budget-{n}", match=match, allowed=n) for n, match in enumerate(matches)),
        )
        asking = replace(PREEMPTOR, requests=pod(cpu="2").requests)
        decision = decide_preemption(asking, cluster, SchedulerRules(release))
        return decision.candidates["node-1"].victims.violations

    return count


def placement(release: Release) -> str:
    cluster = snapshot(node(cpu="1"), pod("web", on="node-1", cpu="1"))
    return decided(release, cluster).message.removeprefix(
        "0/1 nodes are available: 1 Insufficient cpu."
    )


def objection_to_no_victims(release: Release) -> str | None:
    units = victim_units(snapshot(node()), release)
    rules = SchedulerRules(release)
    return guardrail_violation("node-1", VictimSet(()), PREEMPTOR, units, rules)


def waits_for_a_node_that_an_extender_dropped(release: Release) -> bool:
    leaving = pod("leaving", on="node-1", terminating=True, preempted=True)
    cluster = snapshot(node("node-1"), node("node-2"), leaving)
    asking = replace(PREEMPTOR, nominated_node="node-1")
    filtering = FilterDecision(asking, (), {"node-2": refused(Code.TOO_MANY_PODS)})
    return not post_filter(filtering, cluster, SchedulerRules(release)).eligible


def refused_by_its_own_node_name(release: Release) -> str:
    asking, rules = pod(on="node-2"), SchedulerRules(release)
    pipeline = run_pre_filters(asking, snapshot(node()), release, rules.filters)
    return str(pipeline.evaluate(snapshot(node()).nodes["node-1"]))


def refused_by_a_cordoned_node_with_another_name(release: Release) -> str:
    asking = pod(on="node-2", nominated_node="node-1")
    cluster = snapshot(node(unschedulable=True))
    return str(filter_nodes(asking, cluster, SchedulerRules(release)).rejected["node-1"])


def victims_of_a_gang(release: Release) -> int:
    gang = (pod(name, on=name, cpu="1", group="gang") for name in ("node-1", "node-2"))
    nodes = (node(name, cpu="1") for name in ("node-1", "node-2"))
    candidates = decided(release, snapshot(*nodes, *gang, groups=[pod_group("gang")])).candidates
    return len(candidates["node-1"].victims.pods)


def filters_a_member_without_lower_pods(release: Release) -> bool:
    cluster = snapshot(node(cpu="1"), pod("low", on="node-1", cpu="1"))
    member, rules = replace(PREEMPTOR, group="gang"), SchedulerRules(release)
    return bool(filter_with_terminating_pods(member, cluster, rules, ["node-1"]).feasible)


NOBODY = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
CLAIMS = "no new claims to deallocate, "
SHORT = "0/1 nodes are available: 1 Insufficient cpu. "
SKIPPED = "1 node(s) didn't satisfy plugin(s) [NodeAffinity]."

CHANGES = [
    Change("status_resources", 33, room_beside(GROWN, 2), before=True, since=False),
    Change("status_resources", 37, room_beside(SHIFTED, 4), before=False, since=True),
    Change("PodLevelResources", 34, room_beside(POD_LEVEL, 2), before=True, since=False),
    Change(
        "InPlacePodLevelResourcesVerticalScaling",
        36,
        room_beside(GROWN_POD_LEVEL, 3),
        before=True,
        since=False,
    ),
    Change("sidecar_host_ports", 33, sidecars_port_is_taken, before=False, since=True),
    Change(
        "taint_reason",
        34,
        refused_by_a_taint,
        before="node(s) had untolerated taint {gpu: yes}",
        since="node(s) had untolerated taint(s)",
    ),
    Change("oversized_is_unresolvable", 34, tried_for_more_than_there_is, before=True, since=False),
    Change(
        "names_unexamined_nodes",
        32,
        lambda each: SKIPPED in said_of_unexamined_nodes(each),
        before=False,
        since=True,
    ),
    Change("mentions_claims", 34, message, before=SHORT + NOBODY, since=SHORT + CLAIMS + NOBODY),
    Change("mentions_claims", 37, message, before=SHORT + CLAIMS + NOBODY, since=SHORT + NOBODY),
    Change(
        "announces_placement",
        37,
        placement,
        before="",
        since=(
            " preemption: found a potential placement for pod on node node-1, preempting 1 victims"
        ),
    ),
    Change("evicts_units", 38, victims_of_a_gang, before=1, since=2),
    Change(
        "simulates_pod_groups", 38, filters_a_member_without_lower_pods, before=False, since=True
    ),
    Change("pdb_violation_count", 37, broken_budgets({"tier": "front"}, WEB), before=2, since=1),
    Change("empty_selector", 38, broken_budgets({}), before=0, since=2),
    Change(
        "victimless_candidates",
        38,
        objection_to_no_victims,
        before="node node-1 has no victims, which release 1.37 refuses",
        since=None,
    ),
    Change(
        "waits_without_status",
        32,
        waits_for_a_node_that_an_extender_dropped,
        before=True,
        since=False,
    ),
    Change(
        "node_name_limits",
        37,
        refused_by_its_own_node_name,
        before="node(s) didn't match the requested node name",
        since="node(s) didn't satisfy plugin(s) [NodeName]",
    ),
    Change(
        "node_name_is_first",
        37,
        refused_by_a_cordoned_node_with_another_name,
        before="node(s) were unschedulable",
        since="node(s) didn't match the requested node name",
    ),
    Change(
        "NodeDeclaredFeatures",
        36,
        fits_a_node_without_a_required_feature,
        before=True,
        since=False,
    ),
    *STORAGE_CHANGES,
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_rule_changes_what_is_decided_in_the_release_in_which_upstream_changed_it(
    change: Change,
) -> None:
    before, since = change.releases
    assert (change.seen(before), change.seen(since)) == (change.before, change.since)


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_only_that_rule_makes_the_difference(change: Change) -> None:
    assert change.seen(change.alone) == change.since


def test_every_change_of_every_rule_is_shown() -> None:
    table = list(RELEASES.values())
    changed = {
        (each.name, int(since.name.removeprefix("1.")))
        for each in fields(Release)
        if each.name not in ("name", "gates")
        for before, since in pairwise(table)
        if getattr(before, each.name) != getattr(since, each.name)
    }
    rules = [change for change in CHANGES if change.rule not in STAGES]
    assert changed == {(change.rule, change.minor) for change in rules}
    unchanging = {"name", "gates"}
    assert {rule for rule, _ in changed} | unchanging == {each.name for each in fields(Release)}
