"""NodeResourcesFit on columns: requests are sums of the pods on a node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.columns.node_columns import is_regular
from policies.preemption.columns.pod_block import FIRST_RESOURCE
from policies.preemption.filtering.node_resources_fit import TOO_MANY_PODS, NodeResourcesFit
from policies.preemption.filtering.status import Code, Reason, Rejection
from policies.preemption.vectorized.framework import FilterInput, VectorizedFilter
from policies.preemption.vectorized.row_view import RowView
from policies.preemption.vectorized.status import RowStatuses

_MAX_RESOURCES = 60
"""The maximum number of requested resources: each has a bit for being insufficient."""


def vectorize_node_resources_fit(
    fit: NodeResourcesFit, filter_input: FilterInput
) -> VectorizedFilter | None:
    """Return the vectorized NodeResourcesFit; None for a pod with too many requested resources."""
    columns, counted = filter_input.columns, tuple(fit.counted(filter_input.pod.requests))
    if len(counted) > _MAX_RESOURCES:
        return None
    wanted = tuple(
        RequestedResource(name, columns.ensure_resource(name), amount) for name, amount in counted
    )
    width = len(columns.names)
    promised = np.zeros((len(wanted), width), np.int64)
    promised_pods = np.zeros(width, np.int64)
    for row, pods in filter_input.nominated_beside.items():
        amounts = [columns.nodes.amounts(pod.requests) for pod in pods]
        promised[:, row] = [sum(each[w.place] for each in amounts) for w in wanted]
        promised_pods[row] = len(pods)
    hopeless = filter_input.release.oversized_is_unresolvable
    return VectorizedFilter(
        (ResourcesConstraint(wanted, promised, promised_pods, hopeless),), _irregular(filter_input)
    )


def _irregular(filter_input: FilterInput) -> frozenset[int]:
    """Return the rows with nominated pods whose amounts cannot be summed in 64 bits."""
    return frozenset(
        row
        for row, pods in filter_input.nominated_beside.items()
        if not all(is_regular(pod.requests) for pod in pods)
    )


@dataclass(frozen=True)
class RequestedResource:
    """A requested resource: its name, its position in the columns, and the amount."""

    name: str
    place: int
    amount: int


@dataclass(frozen=True)
class ResourcesConstraint:
    """The pod's requests, and those of the nominated pods it has to fit beside, by row."""

    wanted: tuple[RequestedResource, ...]
    nominated: Ints
    nominated_pods: Ints
    oversized_is_unresolvable: bool

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        # Bit 0: too many pods. Bit i: the i-th resource is insufficient. Last bit: unresolvable.
        """Refuse the rows with too many pods or an insufficient resource."""
        short = (self._free_pod_slots(view) < 0).astype(np.int64)
        hopeless = 1 << (len(self.wanted) + 1)
        for bit, wanted in enumerate(self.wanted, 1):
            lacking = self._free_amounts(view, wanted, self.nominated[bit - 1]) < 0
            if not lacking.any():
                continue
            short |= lacking.astype(np.int64) << bit
            if self.oversized_is_unresolvable:
                allocatable = view.of_nodes(view.columns.nodes.allocatable[wanted.place])
                short[lacking & (allocatable < wanted.amount)] |= hopeless
        if short.any():
            for found in np.unique(short).tolist():
                if found:
                    statuses.refuse(short == found, self._rejection(found, hopeless))

    def state(self, view: RowView) -> ResourcesConstraintState:
        """Return the free amounts and pod slots of the rows."""
        left = [self._free_amounts(view, w, self.nominated[i]) for i, w in enumerate(self.wanted)]
        needs = [view.channel(FIRST_RESOURCE + wanted.place) for wanted in self.wanted]
        return ResourcesConstraintState(left, needs, self._free_pod_slots(view))

    def _free_amounts(self, view: RowView, wanted: RequestedResource, nominated: Ints) -> Ints:
        nodes = view.columns.nodes
        left = view.of_nodes(nodes.allocatable[wanted.place]) - wanted.amount
        left -= view.requested(wanted.place)
        left -= view.of_nodes(nominated)
        return left

    def _free_pod_slots(self, view: RowView) -> Ints:
        places = view.of_nodes(view.columns.nodes.allowed_pods) - 1
        places -= view.count()
        places -= view.of_nodes(self.nominated_pods)
        return places

    def _rejection(self, short: int, hopeless: int) -> Rejection:
        return Rejection(tuple(self._reasons(short)), resolvable=not short & hopeless)

    def _reasons(self, short: int) -> Iterator[Reason]:
        if short & 1:
            yield TOO_MANY_PODS
        for bit, wanted in enumerate(self.wanted, 1):
            if short >> bit & 1:
                yield Reason(Code.INSUFFICIENT, wanted.name)


class ResourcesConstraintState:
    """The free amount of each resource, and the free pod slots, as pods are added back."""

    def __init__(self, left: list[Ints], needs: list[Ints], places: Ints) -> None:
        self._left = left
        self._needs = needs
        self._places = places

    def allows(self, depth: int) -> Bools:
        """Return for each row whether its pod at ``depth`` fits the free amounts and pod slots."""
        allowed: Bools = self._places > 0
        for left, needs in zip(self._left, self._needs, strict=True):
            allowed &= left >= needs[depth]
        return allowed

    def add_back(self, depth: int, where: Bools) -> None:
        """Subtract the requests and slots of the pods at ``depth`` on the rows ``where``."""
        self._places -= where
        for left, needs in zip(self._left, self._needs, strict=True):
            np.subtract(left, needs[depth], out=left, where=where)
