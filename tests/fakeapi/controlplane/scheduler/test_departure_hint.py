"""Which departures may help a pod: an attempt that a hint leaves out would have failed."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st
from msgspec import structs

from fakeapi.controlplane.scheduler.departure_hint import DepartureHint, departure_hint
from fakeapi.controlplane.scheduler.scheduling_queue import (
    RESOURCE_EVENTS,
    ClusterEvent,
    SchedulingQueue,
)
from policies import SchedulerRules
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.reference_engine import filter_nodes, preempt
from policies.testing.strategies import NODES, SCHEDULERS, Cluster, clusters, grouped_clusters
from policies.testing.values import node, pod, snapshot


def hint_of(pod: Pod, snapshot: Snapshot, rules: SchedulerRules) -> DepartureHint | None:
    """Return the hint of a pod if it has no candidate."""
    filtering = filter_nodes(pod, snapshot, rules)
    if filtering.feasible or filtering.conflict is not None or not is_refused(pod, snapshot, rules):
        return None
    return departure_hint(pod, snapshot, rules, filtering.rejected)


def is_refused(pod: Pod, snapshot: Snapshot, rules: SchedulerRules) -> bool:
    """Return whether a pod fits on no node, and has no candidate."""
    if filter_nodes(pod, snapshot, rules).feasible:
        return False
    decision = preempt(pod, snapshot, rules, list(snapshot.nodes))
    return decision.eligible and not decision.candidates


def is_hopeless(hint: DepartureHint, changed: set[str], snapshot: Snapshot) -> bool:
    return not any(map(hint.may_help, (snapshot.nodes[name] for name in changed | hint.nominated)))


@given(
    st.one_of(clusters(), grouped_clusters()),
    st.frozensets(st.sampled_from(SCHEDULERS)),
    st.sets(st.integers(0, 11)),
)
def test_an_attempt_that_is_left_out_would_fail(
    cluster: Cluster, names: frozenset[str], leaving: set[int]
) -> None:
    rules = SchedulerRules(scheduler_names=names)
    pod = structs.replace(cluster.preemptor, nominated_node=None)
    hint = hint_of(pod, cluster.snapshot, rules)
    if hint is None:
        return
    left = tuple(each for each in cluster.pods if int(each.name[4:]) not in leaving)
    changed = {each.node_name or "" for each in cluster.pods if each not in left} & {*NODES}
    later = replace(cluster, pods=left).snapshot
    hopeless = is_hopeless(hint, changed, later)
    event(f"left out: {hopeless}, after departures: {bool(changed)}")
    if hopeless:
        assert is_refused(pod, later, rules)


NODES_OF_TWO = node("a", cpu="2"), node("tainted", cpu="2", taints=["k=v:NoSchedule"])
FULL = snapshot(*NODES_OF_TWO, pod("old", on="a", cpu="2"))
EMPTY = snapshot(*NODES_OF_TWO)
TAKEN = snapshot(*NODES_OF_TWO, pod("p", on="a", cpu="2"))
PROMISED = snapshot(*NODES_OF_TWO, pod("n", nominated_node="a", cpu="2"))


def waiting(on: Snapshot, *names: str) -> SchedulingQueue:
    """Return a queue of pods that have failed with the hint of a pod of two cores."""
    queue = SchedulingQueue()
    hint = hint_of(pod("p", cpu="2"), on, SchedulerRules())
    assert hint is not None
    for name in names:
        queue.add(name)
        assert queue.start_attempt(name, on.nodes)
        assert queue.record_failure(name, 0, RESOURCE_EVENTS, replace(hint)) is None
    return queue


def woken_by(queue: SchedulingQueue, on: Snapshot, node: str = "a") -> list[str]:
    woken = queue.wake_by_pod(ClusterEvent.POD_GONE, 60, node, lambda: on.nodes)
    return [name for name, _ in woken]


def test_pods_of_one_kind_wait_until_a_node_has_room() -> None:
    queue = waiting(FULL, "p", "q")
    assert woken_by(queue, FULL) == []
    assert woken_by(queue, EMPTY, "tainted") == []
    assert woken_by(queue, EMPTY) == ["p", "q"]
    assert queue.start_attempt("p", EMPTY.nodes)
    assert not queue.start_attempt("q", TAKEN.nodes)


def test_another_event_wakes_them_in_any_case() -> None:
    queue = waiting(FULL, "p")
    assert list(queue.wake(ClusterEvent.NODE_CHANGED, 60)) == [("p", 0)]
    assert queue.start_attempt("p", FULL.nodes)


def test_a_nomination_holds_them_back_until_it_ends() -> None:
    queue = waiting(PROMISED, "p")
    assert woken_by(queue, PROMISED, "tainted") == []
    assert woken_by(queue, EMPTY, "tainted") == ["p"]
