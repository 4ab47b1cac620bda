"""NodeResourcesFit on columns: requests are sums of the pods on a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from policies.devices.extended_resources import delegated_resources
from policies.kubernetes.snapshot import Pod
from policies.preemption.columns.encoded_column import Ints
from policies.preemption.columns.pod_block import EMPTY_PRIORITY, FIRST_RESOURCE, PRIORITY
from policies.preemption.filtering.node_resources_fit import TOO_MANY_PODS, NodeResourcesFit
from policies.preemption.filtering.status import Code, Reason, Rejection
from policies.preemption.vectorized.filtering.framework import (
    Capacity,
    FilterInput,
    NominatedAmounts,
    VectorizedFilter,
)
from policies.preemption.vectorized.row_view import Amounts, RowView, sum_by_row
from policies.preemption.vectorized.status import RowStatuses

_UNLIMITED = 2**60
_MAX_RESOURCES = 60
"""The maximum number of requested resources: each has a bit for being insufficient."""


def vectorize_node_resources_fit(
    fit: NodeResourcesFit, filter_input: FilterInput
) -> VectorizedFilter | None:
    """Return the vectorized NodeResourcesFit; None for a pod with too many requested resources."""
    columns, counted = filter_input.columns, tuple(fit.counted(filter_input.pod.requests))
    if len(counted) > _MAX_RESOURCES:
        return None
    delegated = delegated_resources(filter_input.pod, filter_input.snapshot, filter_input.release)
    requests = tuple(
        RequestedResource(name, columns.ensure_resource(name), amount, name in delegated)
        for name, amount in counted
    )

    places = [each.place for each in requests]

    def nominated(pod: Pod, _: Ints) -> Sequence[int]:
        amounts = columns.nodes.amounts(pod.requests)
        return [*[amounts[place] for place in places], 1]

    constraint = ResourcesConstraint(
        requests,
        NominatedAmounts(filter_input, len(requests) + 1, nominated),
        filter_input.release.oversized_is_unresolvable,
    )
    return VectorizedFilter((constraint,))


@dataclass(frozen=True)
class RequestedResource:
    """A requested resource: its name, its position in the columns, and the amount.

    ``delegated``: devices may back it, so it is not judged on nodes without it.
    """

    name: str
    place: int
    amount: int
    delegated: bool


@dataclass(frozen=True)
class ResourcesConstraint:
    """The pod's requests, and those of the nominated pods that it has to fit beside.

    The last of ``nominated`` is their number.
    """

    requests: tuple[RequestedResource, ...]
    nominated: NominatedAmounts
    oversized_is_unresolvable: bool

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        """Refuse the rows with too many pods or an insufficient resource."""
        # Bit 0: too many pods. Bit i: the i-th resource is insufficient. Last bit: unresolvable.
        *nominated, pods = self.nominated.of_rows(view)
        insufficient = (self._free_pod_slots(view, pods) < 0).astype(np.int64)
        unresolvable = 1 << (len(self.requests) + 1)
        for bit, request in enumerate(self.requests, 1):
            is_insufficient = self._free_amounts(view, request, nominated[bit - 1]) < 0
            if not is_insufficient.any():
                continue
            insufficient |= is_insufficient.astype(np.int64) << bit
            if self.oversized_is_unresolvable:
                allocatable = view.of_nodes(view.columns.nodes.allocatable[request.place])
                insufficient[is_insufficient & (allocatable < request.amount)] |= unresolvable
        if insufficient.any():
            for found in np.unique(insufficient).tolist():
                if found:
                    statuses.refuse(insufficient == found, self._rejection(found, unresolvable))

    def capacities(self, view: RowView) -> Iterable[Capacity]:
        """Return the pod slots and the resources that the removed pods might exhaust."""
        *nominated, pods = self.nominated.of_rows(view)
        slots = self._free_pod_slots(view, pods)
        if (slots < sum_by_row(view.removed_marks)).any():
            yield Capacity(slots, view.channel(PRIORITY) < EMPTY_PRIORITY)
        for place, request in enumerate(self.requests):
            channel = FIRST_RESOURCE + request.place
            free = self._free_amounts(view, request, nominated[place])
            if (free < view.channel_of_removed(channel)).any():
                yield Capacity(free, view.channel(channel))

    def inputs(self) -> Sequence[Amounts] | None:
        """Return nothing: the node and its pods decide; None if devices may."""
        return None if any(each.delegated for each in self.requests) else ()

    def shortages(self, view: RowView) -> Iterator[tuple[Ints, Ints]]:
        """Yield what each row lacks of pod slots and of each resource, and what each pod frees.

        Rows that lack none have at most 0. The pods of ``view`` are all on their rows.
        """
        *nominated, pods = self.nominated.of_rows(view)
        yield -self._free_pod_slots(view, pods), np.ones_like(view.channel(PRIORITY))
        for place, request in enumerate(self.requests):
            missing = -self._free_amounts(view, request, nominated[place])
            yield missing, view.channel(FIRST_RESOURCE + request.place)

    def _free_amounts(self, view: RowView, request: RequestedResource, nominated: Ints) -> Ints:
        nodes = view.columns.nodes
        free = view.of_nodes(nodes.allocatable[request.place]) - request.amount
        free -= view.requested(request.place)
        free -= nominated
        if request.delegated:
            free[view.of_nodes(nodes.allocatable[request.place]) == 0] = _UNLIMITED
        return free

    def _free_pod_slots(self, view: RowView, nominated: Ints) -> Ints:
        slots = view.of_nodes(view.columns.nodes.allowed_pods) - 1
        slots -= view.count()
        slots -= nominated
        return slots

    def _rejection(self, insufficient: int, unresolvable: int) -> Rejection:
        return Rejection(
            tuple(self._reasons(insufficient)), resolvable=not insufficient & unresolvable
        )

    def _reasons(self, insufficient: int) -> Iterator[Reason]:
        if insufficient & 1:
            yield TOO_MANY_PODS
        for bit, request in enumerate(self.requests, 1):
            if insufficient >> bit & 1:
                yield Reason(Code.INSUFFICIENT, request.name)
