"""NodePorts on columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.preemption.columns.encoded_column import Bools
from policies.preemption.columns.pod_block import TRAITS
from policies.preemption.filtering import Filter, node_ports
from policies.preemption.vectorized.framework import (
    ConflictingVictims,
    FilterInput,
    VectorizedFilter,
)
from policies.preemption.vectorized.row_view import RowView, any_by_row
from policies.preemption.vectorized.status import RowStatuses


def vectorize_node_ports(_: Filter, filter_input: FilterInput) -> VectorizedFilter:
    """Return the vectorized NodePorts.

    If two pods have conflicting ports, they may have the same port, which is free as soon as one of
    them leaves or is absent: such rows are reference rows.
    """
    ports = filter_input.pod.host_ports
    if not ports:
        return VectorizedFilter()
    conflicting = filter_input.columns.traits.conflicting(
        lambda other: any(
            node_ports.ports_conflict(port, used) for port in ports for used in other.host_ports
        )
    )
    constraint = PortsConstraint(conflicting)
    with_absent = RowView(filter_input.columns, slice(None))
    shared = np.flatnonzero(constraint.taken(with_absent).sum(axis=0) > 1).tolist()
    return VectorizedFilter((constraint,), frozenset(shared), reads_other_pods=True)


@dataclass(frozen=True)
class PortsConstraint:
    """``conflicting`` holds by number of traits whether the ports conflict."""

    conflicting: Bools

    def taken(self, view: RowView) -> Bools:
        """Return for each pod of the view whether it has a conflicting port."""
        taken: Bools = self.conflicting.take(view.channel(TRAITS))
        return taken

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        """Refuse the rows on which a remaining pod has a conflicting port."""
        taken = self.taken(view)
        if view.removed is not None:
            taken &= ~view.removed
        statuses.refuse(any_by_row(taken), node_ports.REFUSAL)

    def state(self, view: RowView) -> ConflictingVictims:
        """Return the pods with a conflicting port, which may not be added back."""
        return ConflictingVictims(self.taken(view))
