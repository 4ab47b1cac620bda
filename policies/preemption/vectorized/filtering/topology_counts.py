"""Counts by topology domain on columns.

:class:`DomainCountColumns` counts pods (weights by cell) in the domains of a topology key. For a
row it returns the count in the row's own domain, less the removed pods there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.filtering.topology_counts import TopologyDomain
from policies.preemption.vectorized.row_view import Amounts, RowView, sum_by_row


@dataclass(frozen=True)
class TopologyColumn:
    """A topology key: ``domains`` is each row's domain, ``labelled`` whether it has one at all."""

    key: str
    values: tuple[str | None, ...]
    domains: Ints
    labelled: Bools

    def totals(self, per_row: Ints) -> Ints:
        """Return the sums by domain of a value of each row."""
        own = np.where(self.labelled, per_row, 0)
        sums = np.bincount(self.domains, weights=own, minlength=len(self.values))
        return sums.astype(np.int64)


def topology_column(columns: ClusterColumns, key: str) -> TopologyColumn:
    """Return the current domains of a topology key."""
    column = columns.nodes.labels(key)
    none = column.code_of(None)
    return TopologyColumn(key, tuple(column.values), column.rows(), column.rows() != none)


@dataclass(frozen=True)
class DomainCountColumns:
    """Pods counted by domain: ``counts`` by domain, ``weights`` by class of the pods.

    ``channel`` is the channel that holds the class.
    """

    topology: TopologyColumn
    counts: Ints
    weights: Amounts
    channel: int

    def count_of_row(self, view: RowView) -> Ints:
        """Return the count in each row's domain without the removed pods."""
        here: Ints = self.counts.take(view.of_nodes(self.topology.domains))
        if view.removed is not None:
            here -= view.sum_of_removed(self.cell_weights(view))
        return here

    def by_domain(self) -> dict[TopologyDomain, int]:
        """Return the counts in the format of the reference engine's filters."""
        counted = np.flatnonzero(self.counts).tolist()
        values, key = self.topology.values, self.topology.key
        return {
            TopologyDomain(key, str(values[place])): int(self.counts[place]) for place in counted
        }

    def labelled(self, view: RowView) -> Bools:
        """Return which rows are in a domain."""
        return view.of_nodes(self.topology.labelled)

    def cell_weights(self, view: RowView) -> Amounts:
        """Return the weight of each pod, (depth, rows)."""
        return view.lookup(self.channel, self.weights)


def count_by_domain(
    everything: RowView, topology: TopologyColumn, weights: Ints, channel: int
) -> DomainCountColumns:
    """Count all pods of the columns by domain."""
    smallest: Amounts = weights.astype(np.bool_) if weights.max(initial=0) <= 1 else weights
    per_row = sum_by_row(everything.lookup(channel, smallest))
    return DomainCountColumns(topology, topology.totals(per_row), smallest, channel)
