"""Who waits, for how long and for what: told as seconds until the next try."""

from __future__ import annotations

import pytest

from fakeapi.controlplane.scheduler.backlog import EVERYTHING, UNSCHEDULABLE_SECONDS, Backlog, Event
from fakeapi.controlplane.scheduler.hints import awaited_by
from policies.decision import Code, Rejection, refused, unresolvable

GONE = frozenset({Event.POD_GONE})
RETRIED: frozenset[Event] = frozenset()


@pytest.fixture
def backlog() -> Backlog:
    backlog = Backlog()
    backlog.enter("p")
    return backlog


def test_the_backoff_doubles_up_to_its_longest(backlog: Backlog) -> None:
    left = []
    for _ in range(6):
        assert backlog.begin("p")
        left.append(backlog.fail("p", 0, RETRIED))
    assert left == [1, 2, 4, 8, 10, 10]


def test_its_bounds_can_be_configured() -> None:
    backlog = Backlog(3, 5)
    backlog.enter("p")
    assert [backlog.begin("p") and backlog.fail("p", 0, RETRIED) for _ in range(3)] == [3, 5, 5]


def test_a_refused_pod_waits_five_minutes_or_for_what_may_help(backlog: Backlog) -> None:
    backlog.begin("p")
    assert backlog.fail("p", 10, GONE) == UNSCHEDULABLE_SECONDS
    assert list(backlog.wake(Event.NODE_ADDED, 10.2)) == []
    assert list(backlog.wake(Event.POD_GONE, 10.25)) == [("p", 0.75)]
    assert list(backlog.wake(Event.POD_GONE, 60)) == [("p", 0)]


def test_what_happens_during_an_attempt_counts_after_it(backlog: Backlog) -> None:
    backlog.begin("p")
    assert list(backlog.wake(Event.POD_GONE, 0)) == []
    assert backlog.fail("p", 0, GONE) == 1
    backlog.begin("p")
    list(backlog.wake(Event.NODE_ADDED, 0))
    assert backlog.fail("p", 0, GONE) == UNSCHEDULABLE_SECONDS


def test_only_those_asked_about_are_woken(backlog: Backlog) -> None:
    backlog.enter("q")
    for key in "pq":
        backlog.begin(key)
        backlog.fail(key, 0, EVERYTHING)
    assert list(backlog.wake(Event.OWN_CHANGE, 5, ("q", "unknown"))) == [("q", 0)]


def test_a_held_pod_is_not_tried_and_what_it_missed_counts_when_it_is_released(
    backlog: Backlog,
) -> None:
    backlog.begin("p")
    backlog.hold("p")
    assert backlog.fail("p", 0, GONE) is None
    assert not backlog.begin("p")
    assert list(backlog.wake(Event.POD_GONE, 0)) == []
    assert backlog.release("p", 0.5, failed=False) == 0.5
    assert backlog.begin("p")


@pytest.mark.parametrize(("failed", "left"), [(False, UNSCHEDULABLE_SECONDS), (True, 0.0)])
def test_a_released_pod_that_missed_nothing_waits_on_unless_something_went_wrong(
    backlog: Backlog, *, failed: bool, left: float
) -> None:
    backlog.begin("p")
    backlog.hold("p")
    backlog.fail("p", 0, GONE)
    assert backlog.release("p", 0, failed=failed) == left


def test_pods_that_are_not_there_are_no_trouble(backlog: Backlog) -> None:
    backlog.forget("p")
    assert "p" not in backlog
    assert not backlog.begin("p")
    assert backlog.fail("p", 0, GONE) is None
    assert backlog.release("p", 0, failed=True) is None
    backlog.hold("p")
    assert (list(backlog.wake(Event.POD_GONE, 0)), len(backlog)) == ([], 0)


HINTS: list[tuple[str, list[Rejection], set[Event]]] = [
    ("no room", [refused(Code.INSUFFICIENT, "cpu")], {Event.POD_GONE, Event.POD_CHANGED}),
    ("a taint", [unresolvable(Code.UNTOLERATED_TAINTS)], set()),
    ("spread", [refused(Code.SPREAD)], set(EVERYTHING - {Event.STORAGE_CHANGED})),
    ("a volume", [unresolvable(Code.VOLUME_ZONE)], set(EVERYTHING)),
    ("an extender", [refused(Code.BY_EXTENDER, "no")], set(EVERYTHING)),
    ("two reasons", [unresolvable(Code.NODE_AFFINITY), refused(Code.TOO_MANY_PODS)],
     {Event.POD_GONE, Event.POD_CHANGED}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "rejections", "more"), HINTS)
def test_what_may_help_depends_on_the_reasons(
    name: str, rejections: list[Rejection], more: set[Event]
) -> None:
    always = {Event.OWN_CHANGE, Event.NODE_ADDED, Event.NODE_CHANGED}
    assert awaited_by(rejections) == always | more, name
    assert awaited_by(()) == {Event.OWN_CHANGE}
