"""The framework for filters that read the whole cluster, with filters of the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from msgspec import structs

from policies.kubernetes.releases import NEWEST, Release
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.engine import Engine
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
from tests.properties.engines import ENGINES, assert_agreement, victims_by_node

REFUSAL = refused(Code.TOO_MANY_PODS)


@dataclass(frozen=True)
class FixedFilter:
    """A filter whose PreFilter always returns the same result."""

    name: str
    result: PreFilter

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:  # noqa: ARG002
        return self.result


NEEDS_POD = FixedFilter(
    "NeedsPod", PreFilter(NodeFilter(lambda state: None if state.pods else REFUSAL))
)
"""Reject a node without any pod, as affinity to other pods does."""
CONFLICT = FixedFilter("Conflict", PreFilter(conflict=REFUSAL))
"""Reject every node before any is evaluated."""


@dataclass(frozen=True)
class MarkedCount:
    """A plugin that counts a label over the whole cluster for every node."""

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
        pods = [each for state in snapshot.nodes.values() for each in state.pods]
        return PreFilter(MarkedCount(sum("marked" in each.labels for each in pods), self.most))


def rules(*filters: Filter) -> SchedulerRules:
    return SchedulerRules(filters=filters)


def marked(name: str, on: str, priority: int = 0) -> Pod:
    return pod(name, on=on, priority=priority, labels={"marked": "yes"})


def test_the_pod_must_also_fit_without_those_that_are_nominated() -> None:
    """They may run elsewhere, so a filter that they satisfy is evaluated without them, too."""
    nominated = pod("nominated", priority=5, nominated_node="node-1")
    empty = snapshot(node("node-1"), nominated)
    assert filter_nodes(pod(), empty, rules(NEEDS_POD)).rejected == {"node-1": REFUSAL}
    accompanied = snapshot(node("node-1"), nominated, pod("resident", on="node-1"))
    assert filter_nodes(pod(), accompanied, rules(NEEDS_POD)).feasible == ("node-1",)


def test_the_pod_must_fit_beside_those_that_are_nominated() -> None:
    nominated = structs.replace(marked("nominated", "node-1", priority=5), node_name=None)
    cluster = snapshot(node("node-1"), structs.replace(nominated, nominated_node="node-1"))
    assert filter_nodes(pod(), cluster, rules(AtMost(1))).rejected == {"node-1": REFUSAL}
    assert filter_nodes(pod(), cluster, rules(AtMost(2))).feasible == ("node-1",)
    assert filter_nodes(pod(priority=9), cluster, rules(AtMost(1))).feasible == ("node-1",)


@pytest.mark.parametrize(
    ("priority", "assumable", "counts"),
    [(5, False, True), (5, True, True), (1, False, False), (1, True, True)],
)
def test_a_nominated_pod_that_may_be_assumed_counts_at_any_priority(
    priority: int, *, assumable: bool, counts: bool
) -> None:
    nominated = pod(
        cpu="1", priority=priority, nominated_node="node-1", may_be_assumed=assumable, uid="other"
    )
    cluster = snapshot(node("node-1", cpu="1"), nominated)
    asking = pod(cpu="1", priority=5)
    assert_agreement(asking, cluster)
    assert filter_nodes(asking, cluster).feasible == (() if counts else ("node-1",))


def test_a_pod_that_may_be_assumed_is_no_victim_and_takes_part_of_the_room() -> None:
    """The more important pod goes as well, because the nominated one may be on the node."""
    cluster = snapshot(
        node("node-1", cpu="2"),
        pod("web", on="node-1", cpu="1", priority=3),
        pod("api", on="node-1", cpu="1", priority=2),
        pod("early", cpu="1", priority=1, nominated_node="node-1", may_be_assumed=True),
    )
    decision = assert_agreement(pod(cpu="1", priority=5), cluster)
    assert victims_by_node(decision) == {"node-1": ["web", "api"]}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_a_filter_call_counts_a_pod_that_may_be_assumed_as_nominated(
    engine: Callable[[SchedulerRules], Engine],
) -> None:
    """kube-scheduler knows whether the pod is assumed, and has found room on the node."""
    nominated = pod("early", cpu="1", priority=1, nominated_node="node-1", may_be_assumed=True)
    cluster = snapshot(node("node-1", cpu="1"), nominated)

    def feasible(priority: int) -> Sequence[str]:
        asking = pod(cpu="1", priority=priority)
        decide = engine(SchedulerRules()).filter_with_terminating_pods
        return decide(asking, cluster, ["node-1"]).feasible

    assert (feasible(5), feasible(1)) == (("node-1",), ())


@pytest.mark.parametrize(
    ("nominated", "asking", "profiles", "counts"),
    [
        ("default-scheduler", "default-scheduler", [], True),
        ("batch", "default-scheduler", [], False),
        ("batch", "batch", [], True),
        ("batch", "default-scheduler", ["default-scheduler", "batch"], True),
        ("default-scheduler", "batch", ["default-scheduler", "batch"], True),
        ("other", "default-scheduler", ["default-scheduler", "batch"], False),
        ("batch", "other", ["default-scheduler", "batch"], False),
        ("other", "other", ["default-scheduler", "batch"], True),
    ],
)
def test_only_nominations_of_pods_of_the_same_scheduler_count(
    nominated: str, asking: str, profiles: list[str], *, counts: bool
) -> None:
    expecting = pod("expecting", cpu="1", nominated_node="node-1", scheduler_name=nominated)
    cluster = snapshot(node("node-1", cpu="1"), expecting)
    used = SchedulerRules(scheduler_names=frozenset(profiles))
    waiting = pod(cpu="1", scheduler_name=asking)
    assert_agreement(waiting, cluster, used)
    assert filter_nodes(waiting, cluster, used).feasible == (() if counts else ("node-1",))


def test_a_plugin_of_the_whole_cluster_sees_victims_leave_and_return() -> None:
    cluster = snapshot(
        node("node-1"),
        node("node-2"),
        marked("a", "node-1", priority=1),
        marked("b", "node-1", priority=2),
        marked("c", "node-2", priority=3),
        pod("plain", on="node-1"),
    )
    decision = preempt(pod("preemptor", priority=9), cluster, rules(AtMost(3)))
    assert victims_by_node(decision) == {"node-1": ["a"], "node-2": ["c"]}


def test_a_dry_run_on_one_node_does_not_change_the_plugins_of_others() -> None:
    cluster = snapshot(node("node-1"), node("node-2"), marked("a", "node-1"), marked("b", "node-2"))
    decision = preempt(pod("preemptor", priority=9), cluster, rules(AtMost(2)))
    assert sorted(decision.candidates) == ["node-1", "node-2"]


def test_limits_on_the_nodes_intersect_and_their_filters_are_named_in_order() -> None:
    cluster = snapshot(node("node-1"), node("node-2"), node("node-3"))
    first = FixedFilter("Zebra", PreFilter(only=frozenset({"node-1", "node-2"})))
    second = FixedFilter("Ant", PreFilter(only=frozenset({"node-2", "node-3"})))
    decision = filter_nodes(pod(), cluster, rules(first, second))
    assert decision.feasible == ("node-2",)
    assert {str(each) for each in decision.rejected.values()} == {
        "node(s) didn't satisfy plugin(s) [Ant Zebra]"
    }


def test_the_first_conflict_refuses_every_node() -> None:
    cluster = snapshot(node("node-1"), node("node-2"))
    decision = filter_nodes(pod(), cluster, rules(NEEDS_POD, CONFLICT))
    assert decision.conflict == REFUSAL
    assert decision.rejected == {"node-1": REFUSAL, "node-2": REFUSAL}


def test_a_filter_with_nothing_to_check_accepts_every_node() -> None:
    pipeline = run_pre_filters(pod(), snapshot(), NEWEST, ())
    assert pipeline.evaluate(holding(node())) is None


def test_a_node_with_a_pod_that_could_not_be_read_is_refused_before_any_filter() -> None:
    pipeline = run_pre_filters(pod(), snapshot(), NEWEST, (NEEDS_POD,))
    found = pipeline.evaluate(holding(node(), unreadable=["default/odd"]))
    assert str(found) == "node holds a pod that could not be read: default/odd"
