"""A view of some rows of the columns, without some of their pods.

All rows are read in place. Fewer rows are copied on first access, so that later steps only process
these rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.columns.pod_block import EMPTY_PRIORITY, FIRST_RESOURCE, PRIORITY
from policies.preemption.columns.policy_columns import costs_at
from policies.preemption.costs.pod_cost import PodCost

_BYTE: Final = 255
_MANY: Final = 8
_FEW: Final = 256
"""With fewer rows, a temporary array costs less than a loop over the depths."""
T = TypeVar("T", bound=np.generic)

Rows = slice | Ints
"""All rows as a slice, or some as an array of their numbers."""

Amounts = Ints | Bools
"""Amounts of which each is 0 or 1 may be marks, which are read faster."""


@dataclass(frozen=True)
class RowView:
    """The rows ``rows`` of ``columns``, without the pods that are marked.

    ``removed`` marks pods that a dry run removed from their row (depth, rows), while the counts of
    the rest of the cluster stay; ``absent`` marks pods that are treated as if they did not exist
    (depth, width of the columns), so that no count includes them.
    """

    columns: ClusterColumns
    rows: Rows
    removed: Bools | None = None
    absent: Bools | None = None
    _channels: dict[int, Ints] = field(default_factory=dict, repr=False, compare=False)
    _found: dict[tuple[int, int], tuple[Amounts, Amounts]] = field(
        default_factory=dict, repr=False, compare=False
    )
    _removed: dict[int, Ints] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def numbers(self) -> Ints:
        """The numbers of the rows in the columns."""
        every = np.arange(len(self.columns.names))
        return every[self.rows]

    @cached_property
    def removed_marks(self) -> Bools:
        """The removed pods, (depth, rows)."""
        shape = (self.columns.pod_block.depth(), len(self))
        return np.zeros(shape, np.bool_) if self.removed is None else self.removed

    def __len__(self) -> int:
        return len(self.columns.names) if isinstance(self.rows, slice) else len(self.rows)

    def removing(self, removed: Bools | None) -> RowView:
        """Return the view of the same rows without the marked pods, (depth, rows)."""
        return replace(self, removed=removed, _removed={})

    def select(self, places: Ints) -> RowView:
        """Return the view of some of its rows; the view itself if they are all of them."""
        if len(places) == len(self):
            return self
        removed = None if self.removed is None else self.removed.take(places, axis=1)
        sums = {channel: each[places] for channel, each in self._removed.items()}
        return RowView(self.columns, self.numbers[places], removed, self.absent, _removed=sums)

    def channel(self, channel: int) -> Ints:
        """Return the values of one channel, (depth, rows); absent pods are as empty cells."""
        known = self._channels.get(channel)
        if known is None:
            known = self._pick(self.columns.pod_block.used()[channel])
            if self.absent is not None:
                empty = EMPTY_PRIORITY if channel == PRIORITY else 0
                known = np.where(self.absent[:, self.rows], empty, known)
            self._channels[channel] = known
        return known

    def lookup(self, channel: int, values: Amounts) -> Amounts:
        """Return what ``values`` holds for the number that each pod has in a channel."""
        known = self._found.get((channel, id(values)))
        if known is None:
            # The values are kept, too, as their id identifies them.
            known = self._found[channel, id(values)] = values, values.take(self.channel(channel))
        return known[1]

    def _pick(self, of_all: Ints) -> Ints:
        """Return what all rows have, (depth, width), for the rows of the view.

        The result is in order in memory, row by row of each depth.
        """
        if isinstance(self.rows, slice):
            return of_all
        if len(self.rows) * _MANY > of_all.shape[1]:
            return of_all.take(self.rows, axis=1)
        # `take` copies the whole block first, as it is not in order.
        return np.ascontiguousarray(of_all[:, self.rows])

    def policy_channel(self, channel: int) -> Ints:
        """Return the values of one channel of the policy's columns, (depth, rows)."""
        return self._pick(self.columns.policy.block.used()[channel])

    def costs(self, cost: PodCost, now_ns: int) -> Ints:
        """Return the cost of each pod at a time, (depth, rows)."""
        channel = self.columns.policy.cost_channel(cost)
        fixed, rate, since = (self.policy_channel(channel + i) for i in range(3))
        return costs_at(now_ns, fixed, rate, since)

    def requested(self, place: int) -> Ints:
        """Return the sum of the requests of each row for the resource at ``place``."""
        requested = self.of_nodes(self.columns.nodes.requested[place])
        if self.absent is not None:
            requested = requested - self._sum_of_absent(FIRST_RESOURCE + place)
        if self.removed is not None:
            requested = requested - self.channel_of_removed(FIRST_RESOURCE + place)
        return requested

    def _sum_of_absent(self, channel: int) -> Ints:
        """Return the sum of a channel over the absent pods; they are on few rows."""
        total = np.zeros(len(self.columns.names), np.int64)
        if self.absent is not None:
            rows = np.flatnonzero(any_by_row(self.absent))
            values = self.columns.pod_block.used()[channel][:, rows]
            total[rows] = (values * self.absent[:, rows]).sum(axis=0)
        return self.of_nodes(total)

    def count(self) -> Ints:
        """Return the number of pods on each row."""
        count = self.of_nodes(self.columns.pod_block.used_counts())
        if self.absent is not None:
            count = count - np.count_nonzero(self.absent[:, self.rows], axis=0)
        return count if self.removed is None else count - sum_by_row(self.removed)

    def of_nodes(self, values: NDArray[T]) -> NDArray[T]:
        """Return the values of the rows from an array of values of all nodes."""
        picked: NDArray[T] = values[: len(self.columns.names)][self.rows]
        return picked

    def sum_of_removed(self, amounts: Amounts) -> Ints:
        """Return the sum of ``amounts`` (depth, rows) over the removed pods."""
        if self.removed is None:
            return np.zeros(len(self), np.int64)
        return sum_where(amounts, self.removed)

    def channel_of_removed(self, channel: int) -> Ints:
        """Return the sum of a channel over the removed pods."""
        known = self._removed.get(channel)
        if known is None:
            known = self._removed[channel] = self.sum_of_removed(self.channel(channel))
        return known


def sum_where(amounts: Amounts, marks: Bools) -> Ints:
    """Return for each row the sum of the amounts of its marked pods; both are (depth, rows)."""
    if amounts.dtype == np.bool_:
        return sum_by_row(amounts & marks)
    if amounts.shape[1] <= _FEW:
        few: Ints = np.where(marks, amounts, 0).sum(axis=0)
        return few
    total = np.zeros(amounts.shape[1], np.int64)
    for of_pods, marked in zip(amounts, marks, strict=True):
        total += of_pods if marked.all() else masked(of_pods, marked)
    return total


def sum_by_row(amounts: Amounts) -> Ints:
    """Return for each row the sum of the amounts of its pods, (depth, rows)."""
    if amounts.dtype == np.bool_ and len(amounts) <= _BYTE:
        counts = np.add.reduce(amounts.view(np.uint8), axis=0, dtype=np.uint8)
        return np.asarray(counts, np.int64)
    total: Ints = amounts.sum(axis=0, dtype=np.int64)
    return total


def masked(amounts: Amounts, marks: Bools) -> Amounts:
    """Return the marked amounts, and 0 for the others; a ``where`` takes five times as long."""
    if amounts.dtype == np.bool_:
        return amounts & marks
    return amounts & -marks.astype(np.int64)


def any_by_row(marks: Bools) -> Bools:
    """Return for each row whether any of its pods is marked; ``marks`` is (depth, rows)."""
    found: Bools = np.logical_or.reduce(marks, axis=0)
    return found


def rows_where(marked: Bools) -> Rows:
    """Return the marked rows; all of them as a slice."""
    return slice(None) if marked.all() else np.flatnonzero(marked)
