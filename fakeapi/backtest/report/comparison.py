"""Policies compared by their backtests: means over seeds, and differences to the first policy.

A difference is paired: it is the mean of the differences in each seed that both policies have. So
what a seed does to both, such as a burst of arrivals, is not in its interval. For example:

    seed    first    other    difference
    0          10       8        -2
    1          30      27        -3         the difference is -2.33 ± 1.43, and its interval
    2          20      18        -2         excludes 0, though the mean of first is 20 ± 24.8
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from fakeapi.backtest.report.decision_differences import PreemptionDifference, differing_decisions
from fakeapi.backtest.report.estimates import Estimate, estimate
from fakeapi.backtest.report.measures import (
    Measure,
    Values,
    disruption_values,
    group_values,
    simulation_values,
)
from fakeapi.backtest.results import BacktestResults, WorkloadSummary, statistics_by_seed
from fakeapi.backtest.statistics import GroupStatistics, RunStatistics, merge_groups


class PolicyEstimate(Struct, frozen=True, rename="camel"):
    """What a policy has of a measure; ``value`` is None if no seed has one.

    ``difference`` is its paired difference to the first policy, None for the first policy itself.
    ``differs``: the interval of the difference excludes 0.
    """

    policy: str
    value: Estimate | None
    difference: Estimate | None = None
    differs: bool = False


class MeasureComparison(Struct, frozen=True, rename="camel"):
    """A measure of all policies, in their order."""

    measure: Measure
    policies: tuple[PolicyEstimate, ...]


class GroupComparison(Struct, frozen=True, rename="camel"):
    """The measures of the pods of a class, a tenant, or a class of a tenant ("TENANT/CLASS")."""

    name: str
    measures: tuple[MeasureComparison, ...]


class Comparison(Struct, frozen=True, rename="camel"):
    """The content of a report.

    ``complete_seeds`` is how many seeds each policy has with results of all segments; only these
    are compared. ``missing`` counts units without a result. Classes, tenants and groups are sorted
    by disruptions, the most first; ``groups`` have no other measures than these and lost hours.
    """

    workload: WorkloadSummary
    policies: tuple[str, ...]
    seeds: int
    segments: int
    missing: int
    complete_seeds: dict[str, int]
    measures: tuple[MeasureComparison, ...]
    classes: tuple[GroupComparison, ...]
    tenants: tuple[GroupComparison, ...]
    groups: tuple[GroupComparison, ...]
    decisions: tuple[PreemptionDifference, ...]


def compare(results: BacktestResults) -> Comparison:
    """Return the comparison of the policies of a backtest."""
    runs = {policy: statistics_by_seed(results, policy) for policy in results.policies}
    resources = _resources(results.workload, runs)
    known = results.workload.measures

    def measured(values: Values) -> Values:
        return {m: value for m, value in values.items() if known is None or m.name in known}

    def values_of_group(group: GroupStatistics) -> Values:
        return measured(group_values(group, resources))

    return Comparison(
        workload=results.workload,
        policies=results.policies,
        seeds=results.seeds,
        segments=results.segments,
        missing=results.missing,
        complete_seeds={policy: len(by_seed) for policy, by_seed in runs.items()},
        measures=_compare_values(
            {
                policy: {
                    seed: measured(simulation_values(run, resources))
                    for seed, run in by_seed.items()
                }
                for policy, by_seed in runs.items()
            }
        ),
        classes=_compare_groups(runs, _class_name, values_of_group),
        tenants=_compare_groups(runs, _tenant_name, values_of_group),
        groups=_compare_groups(
            runs, lambda name: name, lambda group: measured(disruption_values(group, resources))
        ),
        decisions=differing_decisions(results),
    )


def encode_json(comparison: Comparison) -> bytes:
    """Return a comparison as one JSON document, indented by 2."""
    return msgspec.json.format(msgspec.json.encode(comparison), indent=2)


Runs = Mapping[str, Mapping[int, RunStatistics]]


def _resources(workload: WorkloadSummary, runs: Runs) -> Sequence[str]:
    """Return the resources of the cluster and of lost work: cpu and memory first."""
    known = set(workload.capacity)
    for by_seed in runs.values():
        for run in by_seed.values():
            known.update(run.capacity, *(group.done for group in run.groups.values()))
    return sorted(known, key=lambda name: (name != "cpu", name != "memory", name))


def _tenant_name(group: str) -> str:
    return group.rpartition("/")[0]


def _class_name(group: str) -> str:
    return group.rpartition("/")[2]


def _compare_groups(
    runs: Runs,
    name_of: Callable[[str], str],
    values_of: Callable[[GroupStatistics], Values],
) -> tuple[GroupComparison, ...]:
    merged = {
        policy: {seed: _merged(run, name_of) for seed, run in by_seed.items()}
        for policy, by_seed in runs.items()
    }
    names = {name for by_seed in merged.values() for groups in by_seed.values() for name in groups}
    empty = GroupStatistics()
    found = [
        GroupComparison(
            name,
            _compare_values(
                {
                    policy: {
                        seed: values_of(groups.get(name, empty)) for seed, groups in by_seed.items()
                    }
                    for policy, by_seed in merged.items()
                }
            ),
        )
        for name in names
    ]
    return tuple(sorted(found, key=lambda each: (-_most(each.measures[0]), each.name)))


def _merged(run: RunStatistics, name_of: Callable[[str], str]) -> dict[str, GroupStatistics]:
    parts: dict[str, list[GroupStatistics]] = {}
    for name, group in run.groups.items():
        parts.setdefault(name_of(name), []).append(group)
    return {
        name: merge_groups(known) if len(known) > 1 else known[0] for name, known in parts.items()
    }


def _most(compared: MeasureComparison) -> float:
    """Return the largest mean of any policy."""
    return max((each.value.mean for each in compared.policies if each.value), default=0.0)


def _compare_values(
    values: Mapping[str, Mapping[int, Values]],
) -> tuple[MeasureComparison, ...]:
    """Return the measures of all policies, from their values by policy and seed."""
    measures = dict.fromkeys(
        measure for by_seed in values.values() for found in by_seed.values() for measure in found
    )
    return tuple(
        MeasureComparison(measure, tuple(_policy_estimates(measure, values)))
        for measure in measures
    )


def _policy_estimates(
    measure: Measure, values: Mapping[str, Mapping[int, Values]]
) -> Iterable[PolicyEstimate]:
    first: Mapping[int, float] | None = None
    for policy, by_seed in values.items():
        known = {s: v for s, found in by_seed.items() if (v := found[measure]) is not None}
        value = estimate(known.values())
        if first is None:
            first = known
            yield PolicyEstimate(policy, value)
        else:
            paired = [each - first[seed] for seed, each in known.items() if seed in first]
            difference = estimate(paired)
            differs = difference is not None and difference.excludes_zero
            yield PolicyEstimate(policy, value, difference, differs)
