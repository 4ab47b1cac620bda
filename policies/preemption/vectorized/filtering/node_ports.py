"""NodePorts on columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from policies.kubernetes.snapshot import Pod
from policies.preemption.columns.encoded_column import Bools
from policies.preemption.columns.pod_block import TRAITS
from policies.preemption.filtering import Filter, node_ports
from policies.preemption.vectorized.filtering.framework import (
    Capacity,
    FilterInput,
    NominatedAmounts,
    VectorizedFilter,
    no_conflicts,
)
from policies.preemption.vectorized.row_view import Amounts, RowView, any_by_row, sum_by_row
from policies.preemption.vectorized.status import RowStatuses


def vectorize_node_ports(_: Filter, filter_input: FilterInput) -> VectorizedFilter:
    """Return the vectorized NodePorts.

    If two pods have conflicting ports, they may have the same port, which is free as soon as one of
    them leaves or is absent: such rows are reference rows.
    """
    ports = filter_input.pod.host_ports
    if not ports:
        return VectorizedFilter()

    def conflicts(other: Pod) -> bool:
        return any(
            node_ports.ports_conflict(port, used) for port in ports for used in other.host_ports
        )

    nominated = NominatedAmounts(filter_input, 1, lambda other, _: (conflicts(other),))
    constraint = PortsConstraint(filter_input.columns.traits.conflicting(conflicts), nominated)
    with_absent = RowView(filter_input.columns, slice(None))
    shared = np.flatnonzero(sum_by_row(constraint.taken(with_absent)) > 1).tolist()
    return VectorizedFilter((constraint,), reference_rows=frozenset(shared))


@dataclass(frozen=True)
class PortsConstraint:
    """``conflicting`` holds by number of traits whether the ports conflict.

    ``nominated`` counts the nominated pods whose ports do.
    """

    conflicting: Bools
    nominated: NominatedAmounts

    def taken(self, view: RowView) -> Bools:
        """Return for each pod of the view whether it has a conflicting port."""
        taken: Bools = self.conflicting.take(view.channel(TRAITS))
        return taken

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        """Refuse the rows on which a remaining pod has a conflicting port."""
        taken = self.taken(view)
        if view.removed is not None:
            taken &= ~view.removed
        taken_by_any = any_by_row(taken) | (self.nominated.of_rows(view)[0] > 0)
        statuses.refuse(taken_by_any, node_ports.REFUSAL)

    def capacities(self, view: RowView) -> Iterable[Capacity]:
        """Return that pods with a conflicting port may not be added back."""
        yield no_conflicts(view, self.taken(view))

    def inputs(self) -> Sequence[Amounts]:
        """Return nothing: the pods of the row decide."""
        return ()
