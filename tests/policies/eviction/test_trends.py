"""Trends of available amounts: slopes, remaining time, and the measurements that count."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.eviction.observations import Observation
from policies.eviction.signals import Signal
from policies.eviction.trends import (
    MAX_MEASUREMENTS,
    Measurement,
    Measurements,
    Trend,
    estimate_trend,
    extend_measurements,
)
from policies.kubernetes.quantity import NANOS
from tests.builders.eviction import SECOND

MINUTE = 60 * SECOND
MEMORY = Signal.MEMORY


def readings(*points: tuple[int, int]) -> list[Measurement]:
    """Build readings from seconds and amounts."""
    return [Measurement(at * SECOND, available) for at, available in points]


@pytest.mark.parametrize(
    ("points", "per_minute"),
    [
        ([(0, 900), (10, 800)], -600),
        ([(0, 900), (10, 800), (20, 700)], -600),
        ([(0, 900), (60, 900)], 0),
        ([(0, 100), (60, 160)], 60),
        ([(0, 0), (30, 1), (60, 0)], 0),
        ([(0, 100), (10, 100), (20, 40)], -180),  # of 0, -3 and -6 a second
        ([(0, 100), (10, 90), (20, 90), (30, 80)], -35),  # between two in the middle
        ([(0, 900), (10, 500), (20, 499), (30, 498), (40, 497)], -6),  # a step at the beginning
        ([(0, 900), (10, 899), (20, 898), (30, 897), (40, 500)], -6),  # and at the end
        ([(0, 10), (7200, 9)], 0),  # less than one in a minute
        ([(1_790_000_000, 5 * 2**40), (1_790_000_060, 4 * 2**40)], -(2**40)),
    ],
)
def test_the_slope_is_the_one_in_the_middle(points: list[tuple[int, int]], per_minute: int) -> None:
    found = estimate_trend(readings(*points))
    assert found is not None
    assert (found.per_minute, found.measurements) == (per_minute, len(points))


@pytest.mark.parametrize("points", [[], [(5, 100)]])
def test_one_reading_has_no_trend(points: list[tuple[int, int]]) -> None:
    assert estimate_trend(readings(*points)) is None


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
def test_a_falling_amount_lasts_until_it_is_used_up(
    amount: int, points: list[tuple[int, int]], seconds: int | None
) -> None:
    found = estimate_trend(readings(*points))
    assert found is not None
    assert found.lasts_ns(amount * NANOS) == (None if seconds is None else seconds * SECOND)


def test_only_new_measurements_are_added() -> None:
    seen: Measurements = {}
    for now, measured, available in [(1, 0, 9), (2, 0, 8), (3, -1, 7), (14, 12, 6)]:
        observation = Observation(available, 10, measured * SECOND)
        seen = extend_measurements(seen, {MEMORY: observation}, now * SECOND)
    assert list(seen[MEMORY]) == readings((0, 9), (12, 6))


def test_an_observation_without_a_time_is_of_now() -> None:
    seen: Measurements = {}
    for now in (1, 2):
        seen = extend_measurements(seen, {MEMORY: Observation(10 - now, 10)}, now * SECOND)
    assert list(seen[MEMORY]) == readings((1, 9), (2, 8))


def test_old_measurements_and_absent_signals_are_dropped() -> None:
    seen: Measurements = {}
    for now in range(40):
        seen = extend_measurements(seen, {MEMORY: Observation(now, 99)}, now * SECOND)  # it rises
    assert [each.available for each in seen[MEMORY]] == list(range(40 - MAX_MEASUREMENTS, 40))
    assert extend_measurements(seen, {}, MINUTE) == {}


@pytest.mark.parametrize(
    ("amounts", "kept"),
    [
        ([900, 800, 700, 900], [900]),  # the pod that used it has ended
        ([900, 800, 700, 950, 940], [950, 940]),
        ([900, 800, 700, 890], [900, 800, 700, 890]),
        ([700, 800, 900], [700, 800, 900]),
        ([900, 900, 900], [900, 900, 900]),
        ([900, 901], [900, 901]),
    ],
)
def test_a_full_recovery_starts_a_new_trend(amounts: list[int], kept: list[int]) -> None:
    seen: Measurements = {}
    for now, amount in enumerate(amounts):
        seen = extend_measurements(seen, {MEMORY: Observation(amount, 999)}, now * SECOND)
    assert [each.available for each in seen[MEMORY]] == kept


POINTS = st.dictionaries(
    st.integers(0, 10**18), st.integers(0, 2**50), min_size=2, max_size=MAX_MEASUREMENTS
)


@given(POINTS)
def test_the_slope_is_the_median_of_all(points: dict[int, int]) -> None:
    """Compare with exact fractions; the last digit may differ."""
    found = estimate_trend([Measurement(at, points[at]) for at in sorted(points)])
    slopes = [
        Fraction(points[later] - points[earlier], later - earlier) * SECOND * NANOS
        for earlier, later in combinations(sorted(points), 2)
    ]
    assert found is not None
    assert 0 <= median(slopes) - found.nanos < 2


@given(POINTS, st.integers(-(10**6), 10**6), st.integers(0, 10**18))
def test_a_trend_does_not_depend_on_offsets(points: dict[int, int], more: int, later: int) -> None:
    found = estimate_trend([Measurement(at, points[at]) for at in sorted(points)])
    moved = estimate_trend([Measurement(at + later, points[at] + more) for at in sorted(points)])
    assert found is not None
    assert moved is not None
    assert (found.nanos, found.measurements) == (moved.nanos, moved.measurements)
    assert moved.since_ns == found.since_ns + later


@given(st.integers(1, 10**18), st.integers(0, 2**50))
def test_the_remaining_time_ends_when_nothing_is_available(loss: int, nanos: int) -> None:
    lasts = Trend(-loss, 2).lasts_ns(nanos)
    assert lasts is not None
    assert lasts * loss <= nanos * SECOND < (lasts + 1) * loss
