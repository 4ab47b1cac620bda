"""The volume and device filters, as far as columns can evaluate them.

Most of them read only the node, once the pod's claims are known: these are evaluated on rows that
no other filter refuses, and once for all rows with equal labels if they read only labels. Filters
that count the volumes of other pods are evaluated for all rows where such pods cannot matter; the
other rows are reference rows. Devices are evaluated once for all nodes with equal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np

from policies.kubernetes.snapshot import Pod
from policies.kubernetes.storage import CsiNode, PodStorage, Same
from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.columns.pod_block import TRAITS
from policies.preemption.filtering import Filter, FilterPlugin
from policies.preemption.filtering.dynamic_resources import DevicesFilter
from policies.preemption.filtering.framework import LabelValues, NodeFilter
from policies.preemption.filtering.node_volume_limits import VolumeCounting, VolumeLimitsFilter
from policies.preemption.filtering.status import Rejection
from policies.preemption.filtering.volume_restrictions import VolumeRestrictionsFilter
from policies.preemption.vectorized.filtering.framework import (
    ConstraintWithoutCapacities,
    FilterInput,
    NominatedAmounts,
    VectorizedFilter,
)
from policies.preemption.vectorized.row_view import RowView, any_by_row, sum_by_row
from policies.preemption.vectorized.status import FITS, RowStatuses

_NO_CSI_NODE: Final = -1


def vectorize_node_local(each: Filter, filter_input: FilterInput) -> VectorizedFilter | None:
    """Return a vectorized filter that reads only the node; None if it refuses every node."""
    prepared = each.pre_filter(filter_input.pod, filter_input.snapshot, filter_input.release)
    if prepared.conflict is not None:
        return None
    if prepared.plugin is None:
        return VectorizedFilter()
    columns, reads, passing = filter_input.columns, None, None
    if isinstance(prepared.plugin, NodeFilter):
        reads, passes = prepared.plugin.reads, prepared.plugin.passes
        passing = None if passes is None else _rows_with_label(columns, passes)
    groups = np.arange(len(columns.names)) if reads is None else _rows_by_labels(columns, reads)
    return VectorizedFilter((NodeLocalConstraint(prepared.plugin, filter_input, groups, passing),))


def _rows_with_label(columns: ClusterColumns, wanted: LabelValues) -> Bools:
    """Return for each row whether its node has one of the values of a label."""
    column = columns.nodes.labels(wanted.key)
    found: Bools = np.array([value in wanted.values for value in column.values], np.bool_)
    return found[column.rows()]


def _rows_by_labels(columns: ClusterColumns, keys: Iterable[str]) -> Ints:
    """Return a number for each row; rows with equal values of all labels ``keys`` have the same."""
    groups = np.zeros(len(columns.names), np.int64)
    for key in keys:
        column = columns.nodes.labels(key)
        pairs = groups * len(column.values) + column.rows()
        groups = np.unique(pairs, return_inverse=True)[1]
    return groups


def vectorize_dynamic_resources(each: Filter, filter_input: FilterInput) -> VectorizedFilter | None:
    """Return the vectorized DynamicResources, which evaluates one node of each group."""
    prepared = each.pre_filter(filter_input.pod, filter_input.snapshot, filter_input.release)
    if not isinstance(prepared.plugin, DevicesFilter):
        return vectorize_node_local(each, filter_input)
    for name in prepared.plugin.delegated:
        filter_input.columns.ensure_resource(name)
    groups = _rows_by_devices(filter_input.columns, prepared.plugin)
    return VectorizedFilter(
        (NodeLocalConstraint(prepared.plugin, filter_input, groups),),
        holder_rows=_rows_with(prepared.plugin.holders, filter_input.columns),
    )


def _rows_with(uids: frozenset[str], columns: ClusterColumns) -> frozenset[int]:
    """Return the rows that have a pod with one of these UIDs."""
    if not uids:
        return frozenset()
    return frozenset(
        row
        for row, pods in enumerate(columns.pods)
        if not uids.isdisjoint([pod.uid for pod in pods])
    )


def _rows_by_devices(columns: ClusterColumns, plugin: DevicesFilter) -> Ints:
    """Return a number for each row; rows with equal devices have the same.

    They also lack the same delegated resources.
    """
    found = plugin.groups([state.node for state in columns.states])
    if found is None:
        return np.arange(len(columns.names))
    groups: Ints = np.array(found, np.int64)
    for name in sorted(plugin.delegated):
        allocatable = columns.nodes.allocatable[columns.nodes.resources[name]]
        groups = 2 * groups + (allocatable[: len(groups)] == 0)
    return groups


def vectorize_volume_restrictions(
    each: Filter, filter_input: FilterInput
) -> VectorizedFilter | None:
    """Return the vectorized VolumeRestrictions.

    Rows with pods that have the same disks or claims are reference rows.
    """
    prepared = each.pre_filter(filter_input.pod, filter_input.snapshot, filter_input.release)
    if prepared.conflict is not None:
        return None
    plugin = prepared.plugin
    if not isinstance(plugin, VolumeRestrictionsFilter):
        return VectorizedFilter()
    affecting = filter_input.columns.traits.storage_counts(plugin.is_affected_by) > 0
    affected = any_by_row(affecting.take(filter_input.all_rows.channel(TRAITS)))
    affected |= _count_nominated(plugin.is_affected_by, filter_input) > 0
    rows = np.flatnonzero(affected).tolist()
    return VectorizedFilter((ClaimInUseConstraint(plugin),), reference_rows=frozenset(rows))


def vectorize_node_volume_limits(
    each: Filter, filter_input: FilterInput
) -> VectorizedFilter | None:
    """Return the vectorized NodeVolumeLimits; rows close to a limit are reference rows."""
    prepared = each.pre_filter(filter_input.pod, filter_input.snapshot, filter_input.release)
    if prepared.conflict is not None:
        return None
    plugin, columns = prepared.plugin, filter_input.columns
    if not isinstance(plugin, VolumeLimitsFilter):
        return VectorizedFilter()
    groups = _rows_by_csi_node(columns, plugin.counting)
    _, firsts, inverse = np.unique(groups, return_index=True, return_inverse=True)
    room: Ints = np.array(
        [plugin.room(columns.states[row].node) for row in firsts.tolist()], np.int64
    )
    per_class = columns.traits.storage_counts(_number_of_volumes)
    others = sum_by_row(filter_input.all_rows.lookup(TRAITS, per_class))
    others += _count_nominated(_number_of_volumes, filter_input)
    attachments = filter_input.snapshot.storage.attachments
    if attachments:
        others = others + np.array([len(attachments.get(name, ())) for name in columns.names])
    close = frozenset(np.flatnonzero(others > room[inverse]).tolist())
    # Where no limit can be exceeded, only a required driver can be absent.
    drivers = NodeFilter(lambda state: plugin.absent_driver(state.node))
    return VectorizedFilter(
        (NodeLocalConstraint(drivers, filter_input, groups),), reference_rows=close
    )


def _number_of_volumes(storage: PodStorage) -> int:
    return len(storage.volumes)


def _count_nominated(count: Callable[[PodStorage], int], filter_input: FilterInput) -> Ints:
    """Return the sums of ``count`` over the nominated pods with volumes, by row."""

    def of_pod(pod: Pod, _: Ints) -> tuple[int]:
        return (0 if pod.storage is None else count(pod.storage),)

    sums: Ints = NominatedAmounts(filter_input, 1, of_pod).of_rows(filter_input.all_rows)[0]
    return sums


def _rows_by_csi_node(columns: ClusterColumns, counting: VolumeCounting) -> Ints:
    """Return a number for each row; rows whose nodes have equal drivers and limits share one."""
    storage = counting.storage
    if storage.unreadable or counting.release.node_lists_volume_limits:
        return np.arange(len(columns.names))
    numbers = _number_csi_nodes(Same(storage.csi_nodes))
    return np.array([numbers.get(name, _NO_CSI_NODE) for name in columns.names], np.int64)


@lru_cache(maxsize=4)
def _number_csi_nodes(csi_nodes: Same[Mapping[str, CsiNode]]) -> Mapping[str, int]:
    """Return the number of each node's CSINode; those that differ only in name have the same."""
    numbers: dict[object, int] = {}
    return {
        name: numbers.setdefault(
            (each.drivers, each.migrated, frozenset(each.limits.items())), len(numbers)
        )
        for name, each in csi_nodes.value.items()
    }


@dataclass(frozen=True)
class NodeLocalConstraint(ConstraintWithoutCapacities):
    """A filter plugin that reads only the node, with a cache of its results.

    ``groups`` has a number for each row of the columns; rows with the same one have equal results.
    The rows ``passing`` are known to fit.
    """

    plugin: FilterPlugin
    filter_input: FilterInput
    groups: Ints
    passing: Bools | None = None
    _cache: dict[int, Rejection | None] = field(default_factory=dict)

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        """Set the plugin's status on the rows that still fit."""
        fits = np.flatnonzero(statuses.fits)
        rows = view.numbers[fits]
        if self.passing is not None:
            unknown = ~self.passing[rows]
            fits, rows = fits[unknown], rows[unknown]
        groups, firsts, inverse = np.unique(
            self.groups[rows], return_index=True, return_inverse=True
        )
        pairs = zip(groups.tolist(), rows[firsts].tolist(), strict=True)
        found = [self._refusal(group, row) for group, row in pairs]
        codes = [FITS if each is None else statuses.rejections.code(each) for each in found]
        statuses.codes[fits] = np.array(codes, np.int32)[inverse]

    def inputs(self) -> None:
        """Return None: claims and devices have other inputs."""
        return

    def _refusal(self, group: int, row: int) -> Rejection | None:
        if group not in self._cache:
            self._cache[group] = self.plugin.refuse(self.filter_input.columns.states[row])
        return self._cache[group]


@dataclass(frozen=True)
class ClaimInUseConstraint(ConstraintWithoutCapacities):
    """The volume restrictions on rows without pods that share disks or claims."""

    plugin: VolumeRestrictionsFilter

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        """Refuse all rows if a ReadWriteOncePod claim of the pod is in use."""
        if self.plugin.conflicts > 0:
            everywhere: Bools = np.ones(len(view), np.bool_)
            statuses.refuse(everywhere, self.plugin.claim_in_use)

    def inputs(self) -> None:
        """Return None: claims and devices have other inputs."""
        return
