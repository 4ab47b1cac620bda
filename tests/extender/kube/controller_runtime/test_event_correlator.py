"""Equal Events are counted, similar ones aggregated, and too many dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.kube.controller_runtime.event_correlator import (
    MAX_CACHE_ENTRIES,
    EventCorrelator,
    EventRecord,
    ObjectReference,
)

POD = ObjectReference("v1", "Pod", "shop", "web-0", "u1")
SECOND = 10**9


def event(
    message: str = "it broke", reason: str = "Broken", about: ObjectReference = POD
) -> EventRecord:
    return EventRecord("", "tester", about, "Warning", reason, message, 0, 0)


def pods(count: int) -> list[EventRecord]:
    return [event(about=replace(POD, name=f"web-{n}", uid=f"u{n}")) for n in range(count)]


def similar(count: int) -> list[EventRecord]:
    return [event(f"it broke in way {n}") for n in range(count)]


class Reporter:
    """Reports Events, each with the time in its name."""

    def __init__(self) -> None:
        self._correlator = EventCorrelator()
        self.now = 0

    def report(self, event: EventRecord, after: int = 0) -> EventRecord | None:
        self.now += after * SECOND
        at = replace(event, name=f"e{self.now}", first_ns=self.now, last_ns=self.now)
        return self._correlator.correlate(at, self.now)


@dataclass(frozen=True)
class Scenario:
    """Earlier Events, their distance in seconds, and the result for one more."""

    before: Sequence[EventRecord]
    event: EventRecord
    apart: int
    count: int
    combined: bool = False


SCENARIOS = {
    "a single event": Scenario([], event(), 5, 1),
    "the same again is counted": Scenario([event()], event(), 5, 2),
    "the same is counted, however often": Scenario([event()] * 10, event(), 30, 11),
    "the same too often is dropped": Scenario([event()] * 26, event(), 1, 0),
    "others do not count": Scenario(pods(30), event("rare", "Unique"), 5, 1),
    "the tenth that is similar is combined": Scenario(similar(9), event(), 5, 1, combined=True),
    "what is combined is counted": Scenario(similar(10), event(), 5, 2, combined=True),
    "the ninth is not yet": Scenario(similar(8), event(), 5, 1),
    "similar ones long ago are forgotten": Scenario([*similar(8), event("last")], event(), 601, 1),
    "similar ones ten minutes ago are not": Scenario(similar(9), event(), 600, 1, combined=True),
    "another reason is not similar": Scenario(similar(9), event(reason="Other"), 5, 1),
}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_an_event_is_counted_combined_or_dropped(scenario: Scenario) -> None:
    reporter = Reporter()
    for before in scenario.before:
        reporter.report(before, scenario.apart)
    written = reporter.report(scenario.event, scenario.apart)
    prefix = "(combined from similar events): " if scenario.combined else ""
    if scenario.count:
        assert written is not None
        assert (written.message, written.count) == (prefix + scenario.event.message, scenario.count)
    else:
        assert written is None


def test_a_counted_event_keeps_its_name() -> None:
    reporter = Reporter()
    reporter.report(event())
    written = reporter.report(event(), after=60)
    assert written is not None
    assert (written.name, written.first_ns, written.last_ns) == ("e0", 0, 60 * SECOND)


def test_aggregated_events_have_an_event_of_their_own() -> None:
    reporter = Reporter()
    for each in similar(9):
        reporter.report(each, after=1)
    names = [
        written.name for each in similar(20)[9:] if (written := reporter.report(each, after=1))
    ]
    assert names == [f"e{10 * SECOND}"] * 11


def test_a_repeated_message_is_counted_even_among_many_similar_ones() -> None:
    reporter = Reporter()
    for each in similar(9):
        reporter.report(each, after=60)
    written = reporter.report(event("it broke in way 8"), after=60)
    assert written is not None
    assert (written.message, written.count) == ("it broke in way 8", 2)


def test_too_many_events_are_limited_to_one_in_five_minutes() -> None:
    reporter = Reporter()
    through = [second for second in range(1200) if reporter.report(event(), after=1)]
    assert len(through) == 28
    assert through[:25] == list(range(25))
    assert through[25:] == pytest.approx([300, 600, 900], abs=1)


def test_dropped_events_are_counted() -> None:
    reporter = Reporter()
    for _ in range(30):
        reporter.report(event())
    written = reporter.report(event(), after=300)
    assert written is not None
    assert written.count == 31


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        (event("another message", "Another"), []),
        (replace(event(), type="Normal"), [1]),
        (replace(event(), component="another"), [1]),
        (event(about=replace(POD, uid="u2")), [1]),
        (event(about=replace(POD, resource_version="7")), []),
    ],
    ids=["reason", "type", "component", "object", "version"],
)
def test_rate_limits_are_per_object_component_and_type(
    other: EventRecord, counts: list[int]
) -> None:
    reporter = Reporter()
    for _ in range(25):
        reporter.report(event())
    assert [each.count for each in (reporter.report(other),) if each] == counts


def test_the_least_recently_used_event_is_forgotten() -> None:
    reporter = Reporter()
    first, *others = pods(MAX_CACHE_ENTRIES + 1)
    reporter.report(first)
    for other in others[1:]:
        reporter.report(other)
    known = reporter.report(first)
    assert known is not None
    assert known.count == 2
    for other in others:
        reporter.report(other)
    forgotten = reporter.report(first)
    assert forgotten is not None
    assert forgotten.count == 1


@given(st.lists(st.tuples(st.sampled_from("abcdefghijklmno"), st.integers(0, 700))))
def test_counts_add_up_to_the_number_of_reports(reports: list[tuple[str, int]]) -> None:
    """Every event is counted in one Event, even if it was not let through."""
    reporter = Reporter()
    highest: dict[str, int] = {}
    dropped = 0
    for message, after in reports:
        written = reporter.report(event(message), after)
        if written is None:
            dropped += 1
        else:
            highest[written.name + written.message[:1]] = written.count
    assert sum(highest.values()) <= len(reports)
    assert sum(highest.values()) + dropped >= len(reports)
