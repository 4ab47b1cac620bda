"""Whole decisions: filtering, eligibility, which nodes are tried, the choice, and the message."""

from __future__ import annotations

import pytest

from policies.kubernetes.releases import NEWEST, RELEASES
from policies.kubernetes.selectors import NodeSelector, NodeSelectorTerm
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.kubernetes.storage import StorageKind
from policies.preemption.filtering import filters_named
from policies.preemption.filtering.status import (
    Code,
    FilterDecision,
    Rejection,
    refused,
    unresolvable,
)
from policies.preemption.policy import CANDIDATE_CRITERIA, Policy, SchedulerRules
from policies.preemption.reference_engine import filter_nodes, post_filter, preempt
from tests.builders import (
    LATE,
    MEASURED,
    budget,
    holding,
    late_claim,
    node,
    on_nodes,
    pod,
    snapshot,
)

FITS = unresolvable(Code.FEASIBLE)
CPU = refused(Code.INSUFFICIENT, "cpu")


def cluster_of(*states: NodeState) -> Snapshot:
    return Snapshot({state.node.name: state for state in states})


def full(name: str, *, priority: int = 0, started: int | None = None) -> NodeState:
    """Build a node of one core with one pod that takes it."""
    resident = pod(f"on-{name}", cpu="1", priority=priority, started=started)
    return holding(node(name, cpu="1"), resident)


PREEMPTOR = pod("job", cpu="1", priority=100)

# Filtering


def test_the_nominated_node_is_examined_even_if_the_pod_names_another() -> None:
    cluster = cluster_of(holding(node("node-1")), holding(node("node-2")), holding(node("node-3")))
    asking = pod(node_affinity=on_nodes("node-3"), nominated_node="node-1")
    rejected = filter_nodes(asking, cluster).rejected
    assert {name: str(why) for name, why in rejected.items()} == {
        "node-1": "node(s) didn't match Pod's node affinity/selector",
        "node-2": "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    }


def test_filtering_separates_the_nodes_that_fit() -> None:
    cluster = cluster_of(full("full"), holding(node("free")))
    decision = filter_nodes(pod(cpu="1"), cluster)
    assert (decision.feasible, decision.rejected) == (("free",), {"full": CPU})


def test_filtering_may_be_limited_to_some_nodes() -> None:
    cluster = cluster_of(full("full"), holding(node("free")), holding(node("other")))
    decision = filter_nodes(pod(cpu="1"), cluster, among=["full", "free"])
    assert (decision.feasible, decision.rejected) == (("free",), {"full": CPU})


def test_only_the_filters_of_the_rules_run() -> None:
    cluster = cluster_of(holding(node("node-1", unschedulable=True)), full("full"))
    decision = filter_nodes(
        pod(cpu="1"), cluster, SchedulerRules(filters=filters_named(["NodeUnschedulable"]))
    )
    assert decision.feasible == ("full",)


def test_only_filters_of_the_rules_are_named_as_unevaluated() -> None:
    waiting = late_claim("data"), LATE, MEASURED
    asking, moment = pod(volumes=["data"]), snapshot(*waiting, unknown=[StorageKind.CAPACITIES])
    assert filter_nodes(asking, moment).not_evaluated == {"VolumeBinding"}
    assert (
        filter_nodes(
            asking, moment, SchedulerRules(filters=filters_named(["NodeName"]))
        ).not_evaluated
        == set()
    )


# Which nodes are tried


def test_only_nodes_that_eviction_might_help_are_tried() -> None:
    cluster = cluster_of(
        full("resolvable"), holding(node("cordoned", unschedulable=True), pod("low")), full("spare")
    )
    decision = preempt(PREEMPTOR, cluster)
    assert set(decision.candidates) == {"resolvable", "spare"}
    assert decision.rejected == {"cordoned": unresolvable(Code.UNSCHEDULABLE)}


def test_a_node_without_a_status_is_not_tried() -> None:
    cluster = cluster_of(full("examined"), full("unexamined"))
    filtering = FilterDecision(PREEMPTOR, (), {"examined": CPU})
    assert set(post_filter(filtering, cluster).candidates) == {"examined"}


def test_a_node_that_fits_is_rejected_as_a_candidate() -> None:
    cluster = cluster_of(full("full"), holding(node("free"), pod("low")))
    decision = preempt(PREEMPTOR, cluster)
    assert (set(decision.candidates), decision.rejected) == ({"full"}, {"free": FITS})


def test_given_nodes_are_tried_whatever_their_status() -> None:
    cluster = cluster_of(full("a"), full("b"), full("c"))
    decision = preempt(PREEMPTOR, cluster, potential=["c", "a", "unknown"])
    assert set(decision.candidates) == {"a", "c"}
    assert decision.rejected == {"b": CPU}


def test_an_ineligible_pod_tries_no_node() -> None:
    decision = preempt(pod(cpu="1", priority=100, preempts=False), cluster_of(full("a")))
    assert not decision.eligible
    assert (decision.chosen, decision.candidates, decision.rejected) == (None, {}, {"a": CPU})


# The choice


def test_the_best_node_is_chosen_and_the_criterion_named() -> None:
    decision = preempt(PREEMPTOR, cluster_of(full("a", priority=2), full("b", priority=1)))
    assert decision.chosen == decision.candidates["b"]
    assert decision.decided_by == "lowest priority of the first victim"


def test_an_only_candidate_is_decided_by_nothing() -> None:
    decision = preempt(PREEMPTOR, cluster_of(full("a")))
    assert (decision.chosen, decision.decided_by) == (decision.candidates["a"], None)


def test_full_ties_fall_to_the_smallest_node_name() -> None:
    decision = preempt(PREEMPTOR, cluster_of(full("b"), full("a"), full("c")))
    assert decision.chosen == decision.candidates["a"]
    assert decision.decided_by == "node name"


def test_the_criterion_that_is_named_separates_the_winner_from_its_closest_rival() -> None:
    decision = preempt(
        PREEMPTOR, cluster_of(full("a", started=9), full("b", started=5), full("c", priority=9))
    )
    assert decision.chosen == decision.candidates["a"]
    assert decision.decided_by == "latest start of the most important victims"


def test_a_policy_sets_the_order_of_candidates() -> None:
    latest_first = Policy(
        "spare the long-running",
        candidates=(CANDIDATE_CRITERIA["latest start of the most important victims"],),
    )
    cluster = cluster_of(full("a", priority=1, started=5), full("b", priority=9, started=9))
    assert preempt(PREEMPTOR, cluster).chosen == preempt(PREEMPTOR, cluster).candidates["a"]
    decision = preempt(PREEMPTOR, cluster, SchedulerRules(policy=latest_first))
    assert decision.chosen == decision.candidates["b"]


def test_a_violated_budget_outweighs_any_priority() -> None:
    web = {"app": "web"}
    cluster = snapshot(
        node("a", cpu="1"),
        node("b", cpu="1"),
        pod("cheap", on="a", cpu="1", labels=web),
        pod("expensive", on="b", cpu="1", priority=99),
        budget("web", match=web),
    )
    decision = preempt(PREEMPTOR, cluster)
    assert decision.chosen == decision.candidates["b"]
    assert decision.decided_by == "fewest PDB violations"


# The message


def message(cluster: Snapshot, asking: Pod, release: str = "1.33") -> str:
    return preempt(asking, cluster, SchedulerRules(RELEASES[release])).message


def test_without_a_candidate_both_passes_are_counted() -> None:
    cluster = cluster_of(
        full("a", priority=200), full("b"), holding(node("cordoned", unschedulable=True))
    )
    assert message(cluster, pod("job", cpu="1", priority=0)) == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. "
        "preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, "
        "2 No preemption victims found for incoming pod."
    )


@pytest.mark.parametrize(
    ("release", "sentence"),
    [
        ("1.36", ""),
        (
            "1.37",
            " preemption: found a potential placement for pod on node a, preempting 1 victims",
        ),
    ],
)
def test_a_placement_is_announced_since_1_37(release: str, sentence: str) -> None:
    expected = "0/1 nodes are available: 1 Insufficient cpu." + sentence
    assert message(cluster_of(full("a")), PREEMPTOR, release) == expected


@pytest.mark.parametrize("preempts", [True, False])
def test_without_any_node_kube_scheduler_does_not_even_filter(*, preempts: bool) -> None:
    decision = preempt(pod("job", cpu="1", preempts=preempts), snapshot())
    assert decision.message == "no nodes available to schedule pods"
    assert (decision.chosen, decision.candidates, decision.rejected) == (None, {}, {})


@pytest.mark.parametrize(
    ("release", "claims"),
    [
        ("1.33", ""),
        ("1.34", "no new claims to deallocate, "),
        ("1.36", "no new claims to deallocate, "),
        ("1.37", ""),
    ],
)
def test_a_failure_reports_claims_from_1_34_to_1_36(release: str, claims: str) -> None:
    asking = pod("job", cpu="1", priority=0)
    assert message(cluster_of(full("a")), asking, release) == (
        f"0/1 nodes are available: 1 Insufficient cpu. {claims}"
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_an_ineligible_pod_gets_the_reason() -> None:
    assert message(cluster_of(full("a")), pod("job", cpu="1", preempts=False)) == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: not eligible due to preemptionPolicy=Never."
    )


@pytest.mark.parametrize(
    ("release", "reasons"),
    [
        ("1.31", "1 Insufficient cpu"),
        ("1.32", "1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]"),
    ],
)
def test_nodes_that_were_not_examined_are_counted_since_1_32(release: str, reasons: str) -> None:
    cluster = cluster_of(full("a", priority=200), full("b"), full("c"))
    asking = pod("job", cpu="1", priority=100, node_affinity=on_nodes("a"))
    assert message(cluster, asking, release) == (
        f"0/3 nodes are available: {reasons}. "
        "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, "
        "2 Preemption is not helpful for scheduling."
    )


CONFLICTING = NodeSelectorTerm(fields=on_nodes("a").terms[0].fields + on_nodes("b").terms[0].fields)
NOT_HELPFUL = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."


@pytest.mark.parametrize(
    ("release", "nominated", "outcome"),
    [
        ("1.33", None, NOT_HELPFUL),
        # DynamicResources runs before preemption, and fails without the state of its PreFilter.
        ("1.34", None, "not found"),
        ("1.36", None, "not found"),
        ("1.36", "a", "not found"),
        ("1.37", None, "not found"),
    ],
)
def test_a_conflict_is_reported_once_without_a_count(
    release: str, nominated: str | None, outcome: str
) -> None:
    asking = pod(
        "job",
        cpu="1",
        priority=100,
        node_affinity=NodeSelector((CONFLICTING,)),
        nominated_node=nominated,
    )
    assert message(cluster_of(full("a"), full("b")), asking, release) == (
        f"0/2 nodes are available: pod affinity terms conflict. {outcome}"
    )


@pytest.mark.parametrize(
    ("tried", "error"),
    [
        (["a"], 'expected at least one victim pod on node "a"'),
        (
            ["a", "b"],
            (
                '[expected at least one victim pod on node "a", '
                'expected at least one victim pod on node "b"]'
            ),
        ),
    ],
)
def test_nodes_that_need_no_victims_are_an_error_if_there_is_no_candidate(
    tried: list[str], error: str
) -> None:
    cluster = cluster_of(*(holding(node(name), pod(f"on-{name}")) for name in "ab"), full("c"))
    decision = preempt(PREEMPTOR, cluster, potential=tried)
    assert decision.message.endswith(f" preemption: {error}")
    assert decision.chosen is None
    with_candidate = preempt(PREEMPTOR, cluster, potential=[*tried, "c"])
    assert with_candidate.chosen == with_candidate.candidates["c"]


def test_a_rejection_by_several_resources_counts_each() -> None:
    busy_node = holding(node("a", cpu="1", memory="1"), pod("low", cpu="1", memory="1"))
    asking = pod("job", cpu="1", memory="1", priority=0)
    assert message(cluster_of(busy_node), asking).startswith(
        "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. "
    )


def test_the_newest_release_is_the_default() -> None:
    assert SchedulerRules().release is NEWEST


def test_a_decision_carries_every_node_exactly_once() -> None:
    cluster = cluster_of(full("a"), full("b", priority=200), holding(node("free")))
    decision = preempt(PREEMPTOR, cluster)
    assert sorted([*decision.candidates, *decision.rejected]) == ["a", "b", "free"]
    assert all(isinstance(each, Rejection) for each in decision.rejected.values())
