"""The results of a backtest: one result for each unit, and the JSON document of all.

A unit is a segment of the workload, a policy and a seed. The document is complete without the
workload: a report can be made of it anew, and results of interrupted backtests are kept in it.
"""

from __future__ import annotations

from msgspec import Struct, field

from fakeapi.backtest.statistics import RunStatistics, merge_statistics


class LeftOut(Struct, frozen=True, rename="camel"):
    """Rows of a workload that were left out: why, how many, and where the first one is."""

    reason: str
    count: int
    first: str


class WorkloadSummary(Struct, frozen=True, rename="camel"):
    """What a report says about a workload. ``capacity`` is that of all nodes, by resource.

    ``jobs`` are simulated; of a ledger, ``decisions`` are made again instead. ``measures`` are the
    names of those that the workload has, None for all.
    """

    name: str
    nodes: int
    jobs: int
    duration_ns: int
    capacity: dict[str, int]
    assumptions: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    decisions: int = 0
    measures: tuple[str, ...] | None = None


class UnitResult(Struct, frozen=True, rename="camel"):
    """The result of one unit. ``policy`` is its name; ``segment`` counts from 0."""

    policy: str
    seed: int
    segment: int
    statistics: RunStatistics


class BacktestResults(Struct, frozen=True, rename="camel"):
    """The results of a backtest; ``missing`` counts units without a result.

    ``policies`` are names in the order of the command line; the first is what the others are
    compared with.
    """

    workload: WorkloadSummary
    policies: tuple[str, ...]
    seeds: int
    segments: int
    units: tuple[UnitResult, ...] = field(default=())
    missing: int = 0


def statistics_by_seed(results: BacktestResults, policy: str) -> dict[int, RunStatistics]:
    """Return a policy's statistics over all segments, for each seed that has all of them."""
    found = {}
    for seed in range(results.seeds):
        parts = [u.statistics for u in results.units if u.policy == policy and u.seed == seed]
        if len(parts) == results.segments:
            found[seed] = merge_statistics(parts)
    return found
