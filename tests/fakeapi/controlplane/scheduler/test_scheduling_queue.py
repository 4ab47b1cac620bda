"""Who waits, for how long and for what: told as seconds until the next try."""

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
def backlog() -> SchedulingQueue:
    backlog = SchedulingQueue()
    backlog.add("p")
    return backlog


def test_the_backoff_doubles_up_to_its_longest(backlog: SchedulingQueue) -> None:
    left = []
    for _ in range(6):
        assert backlog.start_attempt("p")
        left.append(backlog.record_failure("p", 0, RETRIED))
    assert left == [1, 2, 4, 8, 10, 10]


def test_its_bounds_can_be_configured() -> None:
    backlog = SchedulingQueue(3, 5)
    backlog.add("p")
    assert [
        backlog.start_attempt("p") and backlog.record_failure("p", 0, RETRIED) for _ in range(3)
    ] == [3, 5, 5]


def test_a_refused_pod_waits_five_minutes_or_for_what_may_help(backlog: SchedulingQueue) -> None:
    backlog.start_attempt("p")
    assert backlog.record_failure("p", 10, GONE) == UNSCHEDULABLE_SECONDS
    assert list(backlog.wake(ClusterEvent.NODE_ADDED, 10.2)) == []
    assert list(backlog.wake(ClusterEvent.POD_GONE, 10.25)) == [("p", 0.75)]
    assert list(backlog.wake(ClusterEvent.POD_GONE, 60)) == [("p", 0)]


def test_an_event_during_an_attempt_counts_after_it(backlog: SchedulingQueue) -> None:
    backlog.start_attempt("p")
    assert list(backlog.wake(ClusterEvent.POD_GONE, 0)) == []
    assert backlog.record_failure("p", 0, GONE) == 1
    backlog.start_attempt("p")
    list(backlog.wake(ClusterEvent.NODE_ADDED, 0))
    assert backlog.record_failure("p", 0, GONE) == UNSCHEDULABLE_SECONDS


def test_only_those_asked_about_are_woken(backlog: SchedulingQueue) -> None:
    backlog.add("q")
    for key in "pq":
        backlog.start_attempt(key)
        backlog.record_failure(key, 0, ALL_EVENTS)
    assert list(backlog.wake(ClusterEvent.OWN_CHANGE, 5, ("q", "unknown"))) == [("q", 0)]


def test_a_held_pod_is_not_tried_and_what_it_missed_counts_when_it_is_released(
    backlog: SchedulingQueue,
) -> None:
    backlog.start_attempt("p")
    backlog.hold("p")
    assert backlog.record_failure("p", 0, GONE) is None
    assert not backlog.start_attempt("p")
    assert list(backlog.wake(ClusterEvent.POD_GONE, 0)) == []
    assert backlog.release("p", 0.5, failed=False) == 0.5
    assert backlog.start_attempt("p")


@pytest.mark.parametrize(("failed", "left"), [(False, UNSCHEDULABLE_SECONDS), (True, 0.0)])
def test_a_released_pod_that_missed_nothing_waits_on_unless_something_went_wrong(
    backlog: SchedulingQueue, *, failed: bool, left: float
) -> None:
    backlog.start_attempt("p")
    backlog.hold("p")
    backlog.record_failure("p", 0, GONE)
    assert backlog.release("p", 0, failed=failed) == left


def test_missing_pods_are_no_error(backlog: SchedulingQueue) -> None:
    backlog.forget("p")
    assert "p" not in backlog
    assert not backlog.start_attempt("p")
    assert backlog.record_failure("p", 0, GONE) is None
    assert backlog.release("p", 0, failed=True) is None
    backlog.hold("p")
    assert (list(backlog.wake(ClusterEvent.POD_GONE, 0)), len(backlog)) == ([], 0)


HINTS: list[tuple[str, list[Rejection], set[ClusterEvent]]] = [
    (
        "no room",
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
