"""The criteria of candidates on columns: the key of each row of a dry run at once.

Twins of the criteria of :mod:`policies.preemption.policy` and
:mod:`policies.preemption.costs.candidate_criteria`. Any other criterion has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from policies.kubernetes.criteria import Criterion
from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.columns.pod_block import FIRST_RESOURCE, PRIORITY, START_TIME
from policies.preemption.costs.candidate_criteria import (
    BoundCriterion,
    BoundGroupValue,
    GroupCriterion,
    GroupTotals,
)
from policies.preemption.costs.fragmentation import BoundFragmentation
from policies.preemption.costs.groupings import Grouping
from policies.preemption.costs.pod_cost import PodCost
from policies.preemption.costs.quota_usage import RequestCost
from policies.preemption.decision import Candidate
from policies.preemption.policy import (
    CANDIDATE_CRITERIA,
    PRIORITY_SHIFT,
    Policy,
)
from policies.preemption.vectorized.dry_run import AllowedVictims, DryRunRows
from policies.preemption.vectorized.row_view import sum_by_row, sum_where

VIOLATIONS = next(iter(CANDIDATE_CRITERIA))
_LOWEST = -(2**63)


def criterion_keys(run: DryRunRows, criterion: Criterion[Candidate], level: Ints) -> Ints | None:
    """Return the keys of the candidates ``level`` of a dry run; None without a twin."""
    if isinstance(criterion, BoundCriterion):
        source = criterion.source
        if isinstance(source, GroupCriterion):
            return _count_groups(run, level, source.grouping)
        if source.grouping is None:
            return _sum_of_victims(run, level, source.cost, criterion.now_ns)
        return _sum_of_groups(run, level, source.cost, source.grouping, criterion.now_ns)
    if isinstance(criterion, BoundGroupValue):
        return _combine_values(run, level, criterion)
    if isinstance(criterion, BoundFragmentation):
        return np.maximum(_free_amounts(run, level, criterion.resource) - criterion.taken, 0)
    known = _KEYS.get(criterion.name)
    if known is None or CANDIDATE_CRITERIA.get(criterion.name) is not criterion:
        return None
    keys: Ints = known(run)[level]
    return keys


def own_keys(run: DryRunRows, policy: Policy) -> Mapping[str, Ints]:
    """Return the keys of all candidates by the criteria that read nothing but victims, by name."""
    names = {VIOLATIONS, *(each.name for each in policy.candidates)}
    return {name: key(run) for name, key in _KEYS.items() if name in names}


def prices(run: DryRunRows, criterion: BoundCriterion) -> Ints:
    """Return the price of each pod of the rows; see :func:`cost_bound.prices_by`."""
    source, view = criterion.source, run.candidates
    columns = view.columns.policy
    if isinstance(source, GroupCriterion):
        return np.ones_like(view.channel(PRIORITY))
    if source.grouping is None:
        return view.costs(source.cost, criterion.now_ns)
    totals = columns.totals(source.cost, source.grouping, criterion.now_ns)
    of_groups: Ints = totals[view.policy_channel(columns.group_channel(source.grouping))]
    return of_groups


def group_totals(columns: ClusterColumns, now_ns: int) -> GroupTotals:
    """Return the totals of groups at a time; the columns must not change before they are read."""

    def totals(cost: PodCost, grouping: Grouping) -> Callable[[str], int]:
        numbers, found = columns.policy.groups(grouping), None
        if isinstance(cost, RequestCost):
            found = columns.requests_of_groups(cost.resource, grouping)

        def total(group: str) -> int:
            of_groups = columns.policy.totals(cost, grouping, now_ns) if found is None else found
            number = numbers.find(group)
            return 0 if number is None else of_groups.item(number)

        return total

    return totals


def exceeds_allowance(run: DryRunRows, allowance: AllowedVictims) -> Bools:
    """Return which candidates have more victims of a group than is allowed."""
    allowed, counted = allowance.of_group, allowance.counted(run.candidates)
    # A group of which nothing is allowed has no victims that count.
    most = len(run.victims) * counted.max(initial=0)
    if ((allowed == 0) | (allowed >= most)).all():
        return np.zeros(len(run.candidates), np.bool_)
    channel = run.candidates.columns.policy.group_channel(allowance.bound.grouping)
    depths, rows = np.nonzero(run.victims)
    groups = run.candidates.policy_channel(channel)[depths, rows]
    distinct, places = np.unique(rows * len(allowed) + groups, return_inverse=True)
    counts = np.zeros(len(distinct), np.int64)
    np.add.at(counts, places, np.broadcast_to(counted, run.victims.shape)[depths, rows])
    found = np.zeros(len(run.candidates), np.bool_)
    above = distinct[counts > allowed[distinct % len(allowed)]]
    found[above // len(allowed)] = True
    return found


def _count_groups(run: DryRunRows, level: Ints, grouping: Grouping) -> Ints:
    places, _ = _groups_of_victims(run, level, grouping)
    return np.bincount(places, minlength=len(level))


def _free_amounts(run: DryRunRows, level: Ints, resource: str) -> Ints:
    columns, rows = run.candidates.columns, run.candidates.numbers[level]
    place = columns.ensure_resource(resource)
    of_pods = columns.pod_block.used()[FIRST_RESOURCE + place][:, rows]
    of_victims = np.where(run.victims[:, level], of_pods, 0).sum(axis=0)
    nodes = columns.nodes
    free: Ints = nodes.allocatable[place, rows] - nodes.requested[place, rows] + of_victims
    return free


def _sum_of_victims(run: DryRunRows, level: Ints, cost: PodCost, now_ns: int) -> Ints:
    depths, places = np.nonzero(run.victims[:, level])
    rows = run.candidates.numbers[level[places]]
    costs = run.candidates.columns.policy.costs(cost, now_ns, depths, rows)
    return _sum_at(places, costs, level)


def _sum_of_groups(
    run: DryRunRows, level: Ints, cost: PodCost, grouping: Grouping, now_ns: int
) -> Ints:
    places, numbers = _groups_of_victims(run, level, grouping)
    totals = run.candidates.columns.policy.totals(cost, grouping, now_ns)
    return _sum_at(places, totals[numbers], level)


def _sum_at(places: Ints, amounts: Ints, level: Ints) -> Ints:
    """Return the sum of the amounts at each place of ``level``."""
    total = np.zeros(len(level), np.int64)
    np.add.at(total, places, amounts)
    return total


def _combine_values(run: DryRunRows, level: Ints, criterion: BoundGroupValue) -> Ints:
    columns, source = run.candidates.columns.policy, criterion.source
    key_of, samples = source.grouping.key, columns.groups(source.grouping).samples
    lookup = np.array([0 if pod is None else criterion.value(key_of(pod)) for pod in samples])
    numbers = run.candidates.policy_channel(columns.group_channel(source.grouping))[:, level]
    victims, values = run.victims[:, level], lookup[numbers]
    if source.combine is sum:
        total: Ints = np.where(victims, values, 0).sum(axis=0)
        return total
    highest: Ints = np.where(victims, values, _LOWEST).max(axis=0)
    return highest


def _groups_of_victims(run: DryRunRows, level: Ints, grouping: Grouping) -> tuple[Ints, Ints]:
    """Return the places in ``level`` and the numbers of the victims' groups, each pair once."""
    columns, (depths, places) = run.candidates.columns.policy, np.nonzero(run.victims[:, level])
    rows, count = run.candidates.numbers[level[places]], len(columns.groups(grouping))
    numbers = columns.block.used()[columns.group_channel(grouping), depths, rows]
    return np.divmod(np.unique(places * count + numbers), count)


def _violations(run: DryRunRows) -> Ints:
    return run.violations


def _first_priority(run: DryRunRows) -> Ints:
    # Victims are sorted by importance, so the first one has the highest priority.
    return run.of_first_victims(run.candidates.channel(PRIORITY))


def _sum_of_priorities(run: DryRunRows) -> Ints:
    priorities = sum_where(run.candidates.channel(PRIORITY), run.victims)
    return priorities + PRIORITY_SHIFT * _count(run)


def _count(run: DryRunRows) -> Ints:
    return sum_by_row(run.victims)


def _latest_start(run: DryRunRows) -> Ints:
    return -run.of_first_victims(run.candidates.channel(START_TIME))


_KEYS: Mapping[str, Callable[[DryRunRows], Ints]] = dict(
    zip(
        CANDIDATE_CRITERIA,
        (_violations, _first_priority, _sum_of_priorities, _count, _latest_start),
        strict=True,
    )
)
"""The criteria of :data:`policies.preemption.policy.CANDIDATE_CRITERIA`, in order, on columns."""
