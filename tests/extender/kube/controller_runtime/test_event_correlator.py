"""Which events are written: equal ones counted, similar ones aggregated, floods cut off."""

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


class Teller:
    """Reports Events, each with the time in its name."""

    def __init__(self) -> None:
        self._correlator = EventCorrelator()
        self.now = 0

    def tell(self, told: EventRecord, after: int = 0) -> EventRecord | None:
        self.now += after * SECOND
        at = replace(told, name=f"e{self.now}", first_ns=self.now, last_ns=self.now)
        return self._correlator.correlate(at, self.now)


@dataclass(frozen=True)
class Scenario:
    """Earlier Events, their distance in seconds, and the result for one more."""

    before: Sequence[EventRecord]
    told: EventRecord
    apart: int
    count: int
    combined: bool = False


SCENARIOS = {
    "a single event": Scenario([], event(), 5, 1),
    "the same again is counted": Scenario([event()], event(), 5, 2),
    "the same is counted, however often": Scenario([event()] * 10, event(), 30, 11),
    "the same too often is dropped": Scenario([event()] * 26, event(), 1, 0),
    "others do not count": Scenario(pods(30), event("snowflake", "Unique"), 5, 1),
    "the tenth that is similar is combined": Scenario(similar(9), event(), 5, 1, combined=True),
    "what is combined is counted": Scenario(similar(10), event(), 5, 2, combined=True),
    "the ninth is not yet": Scenario(similar(8), event(), 5, 1),
    "similar ones long ago are forgotten": Scenario([*similar(8), event("last")], event(), 601, 1),
    "similar ones ten minutes ago are not": Scenario(similar(9), event(), 600, 1, combined=True),
    "another reason is not similar": Scenario(similar(9), event(reason="Other"), 5, 1),
}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_result_for_an_event(scenario: Scenario) -> None:
    teller = Teller()
    for before in scenario.before:
        teller.tell(before, scenario.apart)
    told = teller.tell(scenario.told, scenario.apart)
    prefix = "(combined from similar events): " if scenario.combined else ""
    if scenario.count:
        assert told is not None
        assert (told.message, told.count) == (prefix + scenario.told.message, scenario.count)
    else:
        assert told is None


def test_a_counted_event_keeps_its_name() -> None:
    teller = Teller()
    teller.tell(event())
    told = teller.tell(event(), after=60)
    assert told is not None
    assert (told.name, told.first_ns, told.last_ns) == ("e0", 0, 60 * SECOND)


def test_aggregated_events_have_an_event_of_their_own() -> None:
    teller = Teller()
    for each in similar(9):
        teller.tell(each, after=1)
    names = [told.name for each in similar(20)[9:] if (told := teller.tell(each, after=1))]
    assert names == [f"e{10 * SECOND}"] * 11


def test_a_repeated_message_is_counted_even_among_many_similar_ones() -> None:
    teller = Teller()
    for each in similar(9):
        teller.tell(each, after=60)
    told = teller.tell(event("it broke in way 8"), after=60)
    assert told is not None
    assert (told.message, told.count) == ("it broke in way 8", 2)


def test_a_flood_is_let_through_one_by_one_in_five_minutes() -> None:
    teller = Teller()
    through = [second for second in range(1200) if teller.tell(event(), after=1)]
    assert len(through) == 28
    assert through[:25] == list(range(25))
    assert through[25:] == pytest.approx([300, 600, 900], abs=1)


def test_dropped_events_are_counted() -> None:
    teller = Teller()
    for _ in range(30):
        teller.tell(event())
    told = teller.tell(event(), after=300)
    assert told is not None
    assert told.count == 31


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
    teller = Teller()
    for _ in range(25):
        teller.tell(event())
    assert [told.count for told in (teller.tell(other),) if told] == counts


def test_the_least_recently_used_event_is_forgotten() -> None:
    teller = Teller()
    first, *others = pods(MAX_CACHE_ENTRIES + 1)
    teller.tell(first)
    for other in others[1:]:
        teller.tell(other)
    known = teller.tell(first)
    assert known is not None
    assert known.count == 2
    for other in others:
        teller.tell(other)
    forgotten = teller.tell(first)
    assert forgotten is not None
    assert forgotten.count == 1


@given(st.lists(st.tuples(st.sampled_from("abcdefghijklmno"), st.integers(0, 700))))
def test_counts_add_up_to_the_number_of_reports(told: list[tuple[str, int]]) -> None:
    """Every event is counted in one Event, even if it was not let through."""
    teller = Teller()
    highest: dict[str, int] = {}
    dropped = 0
    for message, after in told:
        written = teller.tell(event(message), after)
        if written is None:
            dropped += 1
        else:
            highest[written.name + written.message[:1]] = written.count
    assert sum(highest.values()) <= len(told)
    assert sum(highest.values()) + dropped >= len(told)
