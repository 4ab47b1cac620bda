"""The framework for filters that need the whole cluster, shown with two that no cluster has."""

from __future__ import annotations

from dataclasses import dataclass, replace

from policies.kubernetes.releases import NEWEST, Release
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.filtering import (
    Filter,
    FilterPlugin,
    NodeFilter,
    PreFilter,
    run_pre_filters,
)
from policies.preemption.filtering.status import Code, Rejection, refused
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import filter_nodes, preempt
from tests.builders import holding, node, pod, snapshot

REFUSAL = refused(Code.TOO_MANY_PODS)


@dataclass(frozen=True)
class Company:
    """Refuse a node without any pod, as affinity to other pods does."""

    name: str = "Company"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:  # noqa: ARG002
        return PreFilter(NodeFilter(lambda state: None if state.pods else REFUSAL))


@dataclass(frozen=True)
class Count:
    """A check that counts a label over the whole cluster, whatever node it is asked about."""

    marked: int
    most: int

    def refuse(self, node: NodeState) -> Rejection | None:  # noqa: ARG002
        return REFUSAL if self.marked >= self.most else None

    def removing(self, pod: Pod, node: NodeState) -> FilterPlugin:
        assert pod not in node.pods
        return replace(self, marked=self.marked - ("marked" in pod.labels))

    def adding(self, pod: Pod, node: NodeState) -> FilterPlugin:
        assert pod in node.pods
        return replace(self, marked=self.marked + ("marked" in pod.labels))


@dataclass(frozen=True)
class AtMost:
    """Allow only so many marked pods in the whole cluster."""

    most: int
    name: str = "AtMost"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:  # noqa: ARG002
        everyone = [each for state in snapshot.nodes.values() for each in state.pods]
        return PreFilter(Count(sum("marked" in each.labels for each in everyone), self.most))


@dataclass(frozen=True)
class Only:
    """Limit the nodes that are looked at."""

    names: frozenset[str]
    name: str

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:  # noqa: ARG002
        return PreFilter(only=self.names)


@dataclass(frozen=True)
class Conflict:
    """Refuse every node before any is looked at."""

    name: str = "Conflict"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:  # noqa: ARG002
        return PreFilter(conflict=REFUSAL)


def rules(*filters: Filter) -> SchedulerRules:
    return SchedulerRules(filters=filters)


def marked(name: str, on: str, priority: int = 0) -> Pod:
    return pod(name, on=on, priority=priority, labels={"marked": "yes"})


def test_the_pod_must_also_fit_without_those_that_are_nominated() -> None:
    """They may end up elsewhere, so a filter that their presence satisfies is asked again."""
    promised = pod("promised", priority=5, nominated_node="node-1")
    lonely = snapshot(node("node-1"), promised)
    assert filter_nodes(pod(), lonely, rules(Company())).rejected == {"node-1": REFUSAL}
    accompanied = snapshot(node("node-1"), promised, pod("resident", on="node-1"))
    assert filter_nodes(pod(), accompanied, rules(Company())).feasible == ("node-1",)


def test_the_pod_must_fit_beside_those_that_are_nominated() -> None:
    promised = replace(marked("promised", "node-1", priority=5), node_name=None)
    cluster = snapshot(node("node-1"), replace(promised, nominated_node="node-1"))
    assert filter_nodes(pod(), cluster, rules(AtMost(1))).rejected == {"node-1": REFUSAL}
    assert filter_nodes(pod(), cluster, rules(AtMost(2))).feasible == ("node-1",)
    assert filter_nodes(pod(priority=9), cluster, rules(AtMost(1))).feasible == ("node-1",)


def test_a_check_of_the_whole_cluster_sees_victims_leave_and_return() -> None:
    cluster = snapshot(
        node("node-1"),
        node("node-2"),
        marked("a", "node-1", priority=1),
        marked("b", "node-1", priority=2),
        marked("c", "node-2", priority=3),
        pod("plain", on="node-1"),
    )
    decision = preempt(pod("preemptor", priority=9), cluster, rules(AtMost(3)))
    assert {
        name: [each.name for each in candidate.victims.pods]
        for name, candidate in decision.candidates.items()
    } == {"node-1": ["a"], "node-2": ["c"]}


def test_a_dry_run_on_one_node_leaves_the_checks_of_others_as_they_were() -> None:
    cluster = snapshot(node("node-1"), node("node-2"), marked("a", "node-1"), marked("b", "node-2"))
    decision = preempt(pod("preemptor", priority=9), cluster, rules(AtMost(2)))
    assert sorted(decision.candidates) == ["node-1", "node-2"]


def test_limits_on_the_nodes_intersect_and_their_filters_are_named_in_order() -> None:
    cluster = snapshot(node("node-1"), node("node-2"), node("node-3"))
    first = Only(frozenset({"node-1", "node-2"}), "Zebra")
    second = Only(frozenset({"node-2", "node-3"}), "Ant")
    decision = filter_nodes(pod(), cluster, rules(first, second))
    assert decision.feasible == ("node-2",)
    assert {str(each) for each in decision.rejected.values()} == {
        "node(s) didn't satisfy plugin(s) [Ant Zebra]"
    }


def test_the_first_conflict_refuses_every_node() -> None:
    cluster = snapshot(node("node-1"), node("node-2"))
    decision = filter_nodes(pod(), cluster, rules(Company(), Conflict()))
    assert decision.conflict == REFUSAL
    assert decision.rejected == {"node-1": REFUSAL, "node-2": REFUSAL}


def test_a_filter_with_nothing_to_check_accepts_every_node() -> None:
    pipeline = run_pre_filters(pod(), snapshot(), NEWEST, ())
    assert pipeline.evaluate(holding(node())) is None


def test_a_node_with_a_pod_that_could_not_be_read_is_refused_before_any_filter() -> None:
    pipeline = run_pre_filters(pod(), snapshot(), NEWEST, (Company(),))
    found = pipeline.evaluate(holding(node(), unreadable=["default/odd"]))
    assert str(found) == "node holds a pod that could not be read: default/odd"
