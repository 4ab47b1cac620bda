"""Statistics of simulations: durations in buckets, and parts that are merged in any order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.backtest.distribution import Distribution, merge_distributions
from fakeapi.backtest.statistics import (
    MAX_DECISIONS,
    GroupStatistics,
    RunStatistics,
    conservation_error,
    costliest,
    merge_statistics,
)
from tests.builders.backtests import decision, random_results, victim

SECOND = 10**9


def durations(*seconds: float) -> Distribution:
    found = Distribution()
    for each in seconds:
        found.add(int(each * SECOND))
    return found


@pytest.mark.parametrize(
    ("seconds", "fraction", "expected"),
    [
        ((), 0.5, None),
        ((0,), 0.5, 0),
        ((0, 0, 90), 0.5, 0),
        ((10, 20, 30, 40), 0.5, 20),
        ((10, 20, 30, 40), 0.95, 40),
        ((5,) * 99 + (100_000,), 0.99, 5),
        ((5,) * 99 + (100_000,), 1.0, 100_000),
    ],
)
def test_a_quantile_is_a_duration_that_was_added(
    seconds: tuple[float, ...], fraction: float, expected: float | None
) -> None:
    found = durations(*seconds).quantile(fraction)
    assert found == (None if expected is None else pytest.approx(expected, rel=0.01))


LISTS = st.lists(st.integers(0, 10**6 * SECOND))


@given(parts=st.lists(LISTS, max_size=5), order=st.randoms(use_true_random=False))
def test_merged_parts_are_the_whole(parts: list[list[int]], order: object) -> None:
    whole = durations(*(each / SECOND for part in parts for each in part))
    split = [durations(*(each / SECOND for each in part)) for part in parts]
    order.shuffle(split)  # type: ignore[attr-defined]
    assert merge_distributions(split) == Distribution(dict(sorted(whole.buckets.items())))


@given(seed=st.integers(0, 50), order=st.randoms(use_true_random=False))
def test_the_order_of_merging_does_not_matter(seed: int, order: object) -> None:
    parts = [unit.statistics for unit in random_results(seed, ["a", "b"]).units]
    merged = merge_statistics(parts)
    order.shuffle(parts)  # type: ignore[attr-defined]
    assert merge_statistics(parts) == merged
    assert merge_statistics([merge_statistics(parts[:1]), *parts[1:]]).groups == merged.groups


def test_the_costliest_decisions_are_kept() -> None:
    cheap = [decision(f"cheap-{i}", "n", victim(f"v-{i}", cpu_hours=1)) for i in range(500)]
    dear = decision("dear", "n", victim("gpu", gpu_hours=1))
    kept = costliest([*cheap, dear])
    assert (len(kept), kept[0]) == (MAX_DECISIONS, dear)


@pytest.mark.parametrize(
    ("group", "error"),
    [
        (GroupStatistics(submitted=2, finished_pods=1, pending=1), ""),
        (
            GroupStatistics(submitted=2, finished_pods=1),
            "a/b: 2 pods were submitted, and 1 are accounted for",
        ),
        (
            GroupStatistics(done={"cpu": 5}, lost={"cpu": 2}, kept={"cpu": 2}),
            "a/b: 5 cpu seconds were done, 4 are accounted for",
        ),
    ],
)
def test_what_disappears_is_named(group: GroupStatistics, error: str) -> None:
    assert conservation_error(RunStatistics(groups={"a/b": group})) == error
