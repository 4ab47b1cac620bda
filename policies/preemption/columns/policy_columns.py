"""What a policy reads from each pod, as columns: guards, costs, and groups.

The block has the same cells as that of the cluster's pods. Without a policy that reads more than
kube-scheduler does, it does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np

from policies.kubernetes.snapshot import Pod
from policies.preemption.columns.encoded_column import Ints
from policies.preemption.columns.label_classes import InternTable
from policies.preemption.columns.pod_block import PodBlock
from policies.preemption.costs.candidate_criteria import (
    CostCriterion,
    GroupCriterion,
    GroupValueCriterion,
)
from policies.preemption.costs.groupings import Grouping
from policies.preemption.costs.pod_cost import MAX_COST, NO_COST, SECOND_NS, Cost, PodCost
from policies.preemption.guards.allowance import ANY_GROUP, HEALTHY, UNLIMITED, BoundAllowance
from policies.preemption.policy import Policy

PROTECTED_UNTIL: Final = 0
"""The channel of the time until which guards protect a pod; an empty cell has the latest time."""

_EVERY: Final = slice(None)
_FIRST_COST: Final = 1
_OF_COST: Final = 3
"""Channels of a cost: fixed, rate, since."""


class PolicyColumns:
    """``block`` is (channels, depth, width): PROTECTED_UNTIL, then costs, then groups."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        healthy = (HEALTHY,) if policy.allowance_guards else ()
        self._costs: Sequence[PodCost] = tuple(dict.fromkeys((*policy.costs, *healthy)))
        bound = (CostCriterion, GroupCriterion, GroupValueCriterion)
        grouped = (each for each in policy.criteria if isinstance(each, bound))
        self._groups: dict[Grouping, InternTable[str]] = {
            each.grouping: InternTable(each.grouping.key)
            for each in (*grouped, *policy.allowance_guards)
            if each.grouping is not None
        }
        self.is_read = bool(policy.victim_guards or self._costs or self._groups)
        self._totals: dict[tuple[PodCost, Grouping, int], Ints] = {}
        channels = _FIRST_COST + _OF_COST * len(self._costs) + len(self._groups)
        self.block = PodBlock(channels)

    def cost_channel(self, cost: PodCost) -> int:
        """Return the first channel of a cost."""
        return _FIRST_COST + _OF_COST * self._costs.index(cost)

    def group_channel(self, grouping: Grouping) -> int:
        """Return the channel with the numbers of groups."""
        return self._first_group() + list(self._groups).index(grouping)

    def groups(self, grouping: Grouping) -> InternTable[str]:
        """Return the numbers of the groups of a grouping."""
        return self._groups[grouping]

    def costs(
        self, cost: PodCost, now_ns: int, depths: Ints | slice = _EVERY, rows: Ints | slice = _EVERY
    ) -> Ints:
        """Return the costs of cells at a time."""
        first = self.cost_channel(cost)
        fixed, rate, since = self.block.used()[first : first + _OF_COST, depths, rows]
        return costs_at(now_ns, fixed, rate, since)

    def totals(self, cost: PodCost, grouping: Grouping, now_ns: int) -> Ints:
        """Return the cost of each group in the cluster at a time, by its number."""
        key = cost, grouping, now_ns // SECOND_NS
        found = self._totals.get(key)
        if found is None:
            numbers = self.block.used()[self.group_channel(grouping)]
            found = np.zeros(len(self._groups[grouping]), np.int64)
            # A cell without a pod has the number 0, which is that of no group.
            np.add.at(found, numbers.ravel(), self.costs(cost, now_ns).ravel())
            self._totals = {key: found}
        return found

    def allowed(self, bound: BoundAllowance, now_ns: int) -> Ints:
        """Return how much is allowed of each group, by its number."""
        numbers, allowance = self._groups[bound.grouping], bound.allowance
        allowed = np.full(len(numbers), allowance.others, np.int64)
        for group, count in allowance.of.items():
            if (number := numbers.find(group)) is not None:
                allowed[number] = count
        if allowance.kept is not None:
            cost, least = allowance.kept
            totals = self.totals(cost, bound.grouping, now_ns)
            allowed = np.minimum(allowed, totals - least)
        if (number := numbers.find(ANY_GROUP)) is not None:
            allowed[number] = UNLIMITED
        return np.maximum(allowed, 0)

    def append_node(self) -> None:
        """Add an empty node at the end."""
        if self.is_read:
            self.block.append_node()

    def drop_node(self, node: int) -> None:
        """Remove an empty node; the last one moves to its index."""
        if self.is_read:
            self.block.drop_node(node)

    def fill(self, node: int, pods: Sequence[Pod]) -> None:
        """Write the pods of an empty node in order."""
        if self.is_read:
            self.block.fill(node, [self._row(pod) for pod in pods])

    def insert(self, node: int, place: int, pod: Pod) -> None:
        """Insert a pod at ``place`` of a node."""
        if self.is_read:
            self.block.insert(node, place, self._row(pod))

    def write(self, node: int, place: int, pod: Pod) -> None:
        """Replace the pod at ``place`` of a node."""
        if self.is_read:
            self._release(node, place)
            self.block.write(node, place, self._row(pod))

    def remove(self, node: int, place: int) -> None:
        """Remove the pod at ``place`` of a node."""
        if self.is_read:
            self._release(node, place)
            self.block.remove(node, place)

    def _row(self, pod: Pod) -> list[int]:
        self._totals.clear()
        return [
            self._policy.protected_until_ns(pod),
            *chain.from_iterable(self._cost_cells(pod)),
            *(numbers.acquire(pod)[0] for numbers in self._groups.values()),
        ]

    def _cost_cells(self, pod: Pod) -> Iterator[tuple[int, int, int]]:
        for each in self._costs:
            found = each.of(pod)
            cost = found if isinstance(found, Cost) else NO_COST
            yield cost.fixed, cost.rate, cost.since_seconds

    def _release(self, node: int, place: int) -> None:
        self._totals.clear()
        for channel, numbers in enumerate(self._groups.values(), self._first_group()):
            numbers.release(self.block.block.item(channel, place, node))

    def _first_group(self) -> int:
        return _FIRST_COST + _OF_COST * len(self._costs)


def costs_at(now_ns: int, fixed: Ints, rate: Ints, since: Ints) -> Ints:
    """Return the costs of cells; see :meth:`policies.preemption.costs.pod_cost.Cost.at`."""
    seconds = np.maximum(now_ns // SECOND_NS - since, 0)
    costs: Ints = np.clip(fixed + rate * seconds, -MAX_COST, MAX_COST)
    return costs
