"""Counts by topology domain on columns.

A tally counts something of pods (weights by cell) in the domains of a topology key. For a row it
gives the count in the row's own domain, less what the pods that are away there counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.columns import Columns
from policies.columns.coded import Bools, Ints
from policies.filtering.counting import Domain
from policies.vectorized.view import View


@dataclass(frozen=True)
class Topology:
    """A topology key: ``domains`` is each row's domain, ``labelled`` whether it has one at all."""

    key: str
    values: tuple[str | None, ...]
    domains: Ints
    labelled: Bools

    def totals(self, per_row: Ints) -> Ints:
        """Sum a value of each row over its domain; gives sums by domain."""
        own = np.where(self.labelled, per_row, 0)
        sums = np.bincount(self.domains, weights=own, minlength=len(self.values))
        return sums.astype(np.int64)


def topology(columns: Columns, key: str) -> Topology:
    """Return the domains of a topology key as they are now."""
    column = columns.nodes.labels(key)
    none = column.code_of(None)
    return Topology(key, tuple(column.values), column.rows(), column.rows() != none)


@dataclass(frozen=True)
class Tally:
    """Pods counted by domain: ``counts`` by domain, ``weights`` what a pod counts by its class.

    ``channel`` is the channel that holds the class.
    """

    topology: Topology
    counts: Ints
    weights: Ints
    channel: int

    def here(self, view: View) -> Ints:
        """Return the count in each row's domain once the pods that are away are not counted."""
        here: Ints = self.counts.take(view.of_nodes(self.topology.domains))
        if view.gone is not None:
            here -= view.departed(self.cell_weights(view))
        return here

    def by_domain(self) -> dict[Domain, int]:
        """Return the counts as the reference engine's filters have them."""
        counted = np.flatnonzero(self.counts).tolist()
        values, key = self.topology.values, self.topology.key
        return {Domain(key, str(values[place])): int(self.counts[place]) for place in counted}

    def labelled(self, view: View) -> Bools:
        """Tell which rows are in a domain."""
        return view.marks(self.topology.labelled)

    def cell_weights(self, view: View) -> Ints:
        """Return what each pod counts, (depth, rows)."""
        weights: Ints = self.weights.take(view.channel(self.channel))
        return weights


def tally(everything: View, topology: Topology, weights: Ints, channel: int) -> Tally:
    """Count all pods of the columns."""
    per_row = weights.take(everything.channel(channel)).sum(axis=0)
    return Tally(topology, topology.totals(per_row), weights, channel)
