"""Trends of what is left: slopes, how long it lasts at them, which readings count."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.eviction.observations import Observation
from policies.eviction.signals import Signal
from policies.eviction.trends import MOST_READINGS, Reading, Readings, Trend, extended, trend
from tests.evictions import SECOND

MINUTE = 60 * SECOND
MEMORY = Signal.MEMORY


def readings(*points: tuple[int, int]) -> list[Reading]:
    """Build readings from seconds and amounts."""
    return [Reading(at * SECOND, available) for at, available in points]


@pytest.mark.parametrize(
    ("points", "per_minute"),
    [
        ([(0, 900), (10, 800)], -600),
        ([(0, 900), (10, 800), (20, 700)], -600),
        ([(0, 900), (60, 900)], 0),
        ([(0, 100), (60, 160)], 60),
        ([(0, 0), (30, 1), (60, 0)], 0),
        ([(0, 100), (10, 100), (20, 40)], -180),  # the line nearest to all three
        ([(0, 10), (7200, 9)], 0),  # less than one in a minute
        ([(1_790_000_000, 5 * 2**40), (1_790_000_060, 4 * 2**40)], -(2**40)),
    ],
)
def test_the_slope_is_that_of_the_nearest_line(
    points: list[tuple[int, int]], per_minute: int
) -> None:
    found = trend(readings(*points))
    assert found is not None
    assert (found.per_minute, found.readings) == (per_minute, len(points))


@pytest.mark.parametrize("points", [[], [(5, 100)]])
def test_one_reading_has_no_trend(points: list[tuple[int, int]]) -> None:
    assert trend(readings(*points)) is None


@pytest.mark.parametrize(
    ("amount", "points", "seconds"),
    [
        (200, [(0, 900), (10, 800)], 20),
        (0, [(0, 900), (10, 800)], 0),
        (-50, [(0, 900), (10, 800)], 0),
        (200, [(0, 800), (10, 800)], None),
        (200, [(0, 700), (10, 800)], None),
    ],
)
def test_what_is_left_lasts_as_long_as_it_falls(
    amount: int, points: list[tuple[int, int]], seconds: int | None
) -> None:
    found = trend(readings(*points))
    assert found is not None
    assert found.lasts_ns(amount) == (None if seconds is None else seconds * SECOND)


def test_only_what_was_measured_anew_is_added() -> None:
    seen: Readings = {}
    for now, measured, available in [(1, 0, 9), (2, 0, 8), (3, -1, 7), (14, 12, 6)]:
        observation = Observation(available, 10, measured * SECOND)
        seen = extended(seen, {MEMORY: observation}, now * SECOND)
    assert list(seen[MEMORY]) == readings((0, 9), (12, 6))


def test_what_has_no_time_was_measured_now() -> None:
    seen: Readings = {}
    for now in (1, 2):
        seen = extended(seen, {MEMORY: Observation(10 - now, 10)}, now * SECOND)
    assert list(seen[MEMORY]) == readings((1, 9), (2, 8))


def test_old_readings_are_forgotten_and_so_are_signals_that_are_gone() -> None:
    seen: Readings = {}
    for now in range(40):
        seen = extended(seen, {MEMORY: Observation(now, 99)}, now * SECOND)
    assert [each.available for each in seen[MEMORY]] == list(range(40 - MOST_READINGS, 40))
    assert extended(seen, {}, MINUTE) == {}


POINTS = st.dictionaries(
    st.integers(0, 10**18), st.integers(0, 2**50), min_size=2, max_size=MOST_READINGS
)


@given(POINTS)
def test_the_slope_is_the_textbook_one(points: dict[int, int]) -> None:
    """The same as with means, in exact fractions."""
    found = trend([Reading(at, points[at]) for at in sorted(points)])
    mean_time = Fraction(sum(points), len(points))
    mean = Fraction(sum(points.values()), len(points))
    spread = sum((at - mean_time) ** 2 for at in points)
    together = sum((at - mean_time) * (amount - mean) for at, amount in points.items())
    assert found is not None
    assert found.over_ns > 0
    assert Fraction(found.change, found.over_ns) == Fraction(together) / Fraction(spread)


@given(POINTS, st.integers(-(10**6), 10**6), st.integers(0, 10**18))
def test_where_it_all_lies_does_not_matter(points: dict[int, int], more: int, later: int) -> None:
    found = trend([Reading(at, points[at]) for at in sorted(points)])
    moved = trend([Reading(at + later, points[at] + more) for at in sorted(points)])
    assert found == moved


@given(st.integers(1, 10**12), st.integers(1, 10**12), st.integers(0, 2**50))
def test_it_lasts_until_it_is_used_up(loss: int, over_ns: int, amount: int) -> None:
    lasts = Trend(-loss, over_ns, 2).lasts_ns(amount)
    assert lasts is not None
    assert lasts * loss <= amount * over_ns < (lasts + 1) * loss
