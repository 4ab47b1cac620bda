"""The scheduling queue: seconds until the next attempt, and events that shorten them."""

from __future__ import annotations

import pytest

from fakeapi.controlplane.scheduler.scheduling_queue import (
    ALL_EVENTS,
    UNSCHEDULABLE_SECONDS,
    ClusterEvent,
    SchedulingQueue,
    events_that_may_help,
)
from policies.preemption.filtering.status import Code, Rejection, refused, unresolvable

GONE = frozenset({ClusterEvent.POD_GONE})
RETRIED: frozenset[ClusterEvent] = frozenset()


@pytest.fixture
def queue() -> SchedulingQueue:
    queue = SchedulingQueue()
    queue.add("p")
    return queue


def test_the_backoff_doubles_up_to_its_longest(queue: SchedulingQueue) -> None:
    left = []
    for _ in range(6):
        assert queue.start_attempt("p", {})
        left.append(queue.record_failure("p", 0, RETRIED))
    assert left == [1, 2, 4, 8, 10, 10]


def test_the_bounds_of_the_backoff_can_be_configured() -> None:
    queue = SchedulingQueue(3, 5)
    queue.add("p")
    assert [
        queue.start_attempt("p", {}) and queue.record_failure("p", 0, RETRIED) for _ in range(3)
    ] == [3, 5, 5]


def test_an_unschedulable_pod_waits_five_minutes_or_for_an_event(queue: SchedulingQueue) -> None:
    queue.start_attempt("p", {})
    assert queue.record_failure("p", 10, GONE) == UNSCHEDULABLE_SECONDS
    assert list(queue.wake(ClusterEvent.NODE_ADDED, 10.2)) == []
    assert list(queue.wake(ClusterEvent.POD_GONE, 10.25)) == [("p", 0.75)]
    assert list(queue.wake(ClusterEvent.POD_GONE, 60)) == [("p", 0)]


def test_an_event_during_an_attempt_counts_after_it(queue: SchedulingQueue) -> None:
    queue.start_attempt("p", {})
    assert list(queue.wake(ClusterEvent.POD_GONE, 0)) == []
    assert queue.record_failure("p", 0, GONE) == 1
    queue.start_attempt("p", {})
    list(queue.wake(ClusterEvent.NODE_ADDED, 0))
    assert queue.record_failure("p", 0, GONE) == UNSCHEDULABLE_SECONDS


def test_an_event_may_wake_some_pods_only(queue: SchedulingQueue) -> None:
    queue.add("q")
    for key in "pq":
        queue.start_attempt(key, {})
        queue.record_failure(key, 0, ALL_EVENTS)
    assert list(queue.wake(ClusterEvent.OWN_CHANGE, 5, ("q", "unknown"))) == [("q", 0)]


def test_missed_events_of_a_held_pod_count_at_its_release(queue: SchedulingQueue) -> None:
    queue.start_attempt("p", {})
    queue.hold("p")
    assert queue.record_failure("p", 0, GONE) is None
    assert not queue.start_attempt("p", {})
    assert list(queue.wake(ClusterEvent.POD_GONE, 0)) == []
    assert queue.release("p", 0.5, failed=False) == 0.5
    assert queue.start_attempt("p", {})


@pytest.mark.parametrize(("failed", "left"), [(False, UNSCHEDULABLE_SECONDS), (True, 0.0)])
def test_a_released_pod_without_missed_events_waits_unless_it_failed(
    queue: SchedulingQueue, *, failed: bool, left: float
) -> None:
    queue.start_attempt("p", {})
    queue.hold("p")
    queue.record_failure("p", 0, GONE)
    assert queue.release("p", 0, failed=failed) == left


def test_missing_pods_are_no_error(queue: SchedulingQueue) -> None:
    queue.forget("p")
    assert "p" not in queue
    assert not queue.start_attempt("p", {})
    assert queue.record_failure("p", 0, GONE) is None
    assert queue.release("p", 0, failed=True) is None
    queue.hold("p")
    assert (list(queue.wake(ClusterEvent.POD_GONE, 0)), len(queue)) == ([], 0)


HINTS: list[tuple[str, list[Rejection], set[ClusterEvent]]] = [
    (
        "insufficient cpu",
        [refused(Code.INSUFFICIENT, "cpu")],
        {ClusterEvent.POD_GONE, ClusterEvent.POD_CHANGED},
    ),
    ("a taint", [unresolvable(Code.UNTOLERATED_TAINTS)], set()),
    ("spread", [refused(Code.SPREAD)], set(ALL_EVENTS - {ClusterEvent.STORAGE_CHANGED})),
    ("a volume", [unresolvable(Code.VOLUME_ZONE)], set(ALL_EVENTS)),
    ("an extender", [refused(Code.BY_EXTENDER, "no")], set(ALL_EVENTS)),
    ("two reasons", [unresolvable(Code.NODE_AFFINITY), refused(Code.TOO_MANY_PODS)],
     {ClusterEvent.POD_GONE, ClusterEvent.POD_CHANGED}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "rejections", "more"), HINTS)
def test_queueing_hints_depend_on_the_reasons(
    name: str, rejections: list[Rejection], more: set[ClusterEvent]
) -> None:
    always = {ClusterEvent.OWN_CHANGE, ClusterEvent.NODE_ADDED, ClusterEvent.NODE_CHANGED}
    assert events_that_may_help(rejections) == always | more, name
    assert events_that_may_help(()) == {ClusterEvent.OWN_CHANGE}
