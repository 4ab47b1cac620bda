"""The in-tree filters, one file each: whether a pod fits a node, and whether eviction could help.

``IN_TREE`` lists them in the default order of the newest kube-scheduler, and ``in_default_order``
returns filters in that of a release. The order matters: a node's status is that of the first filter
that refuses it. ``configured_filters`` returns the same filters as a KubeSchedulerConfiguration
changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from policies.kubernetes.input_error import InputError
from policies.kubernetes.releases import Release
from policies.kubernetes.selectors import NodeSelector, SpreadConstraint
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.filtering import (
    dynamic_resources,
    node_volume_limits,
    volume_binding,
    volume_restrictions,
    volume_zone,
)
from policies.preemption.filtering.deferred_pod_scheduling import DeferredPodScheduling
from policies.preemption.filtering.dynamic_resources import (
    DynamicResources,
    deallocation_result,
    freed_claims,
    is_claim_conflict,
    node_releasing_devices,
)
from policies.preemption.filtering.framework import (
    NOTHING_TO_CHECK,
    Filter,
    FilterPlugin,
    NodeFilter,
    Pipeline,
    PreFilter,
    has_to_fit_beside,
    in_default_order,
    is_counted_beside,
    is_recorded,
    run_pre_filters,
)
from policies.preemption.filtering.inter_pod_affinity import InterPodAffinity
from policies.preemption.filtering.node_affinity import NodeAffinity
from policies.preemption.filtering.node_declared_features import NodeDeclaredFeatures
from policies.preemption.filtering.node_name import NodeName
from policies.preemption.filtering.node_ports import NodePorts
from policies.preemption.filtering.node_resources_fit import NodeResourcesFit
from policies.preemption.filtering.node_unschedulable import NodeUnschedulable
from policies.preemption.filtering.node_volume_limits import NodeVolumeLimits
from policies.preemption.filtering.pod_topology_spread import PodTopologySpread
from policies.preemption.filtering.taint_toleration import TaintToleration
from policies.preemption.filtering.volume_binding import VolumeBinding
from policies.preemption.filtering.volume_restrictions import VolumeRestrictions
from policies.preemption.filtering.volume_zone import VolumeZone

IN_TREE: tuple[Filter, ...] = (
    NodeName(),
    NodeUnschedulable(),
    TaintToleration(),
    NodeAffinity(),
    NodePorts(),
    DeferredPodScheduling(),
    NodeResourcesFit(),
    VolumeRestrictions(),
    NodeVolumeLimits(),
    VolumeBinding(),
    VolumeZone(),
    PodTopologySpread(),
    InterPodAffinity(),
    DynamicResources(),
    NodeDeclaredFeatures(),
)

_CANNOT_EVALUATE: Mapping[str, Callable[[Pod, Snapshot, Release], bool]] = {
    "VolumeRestrictions": volume_restrictions.cannot_evaluate,
    "NodeVolumeLimits": node_volume_limits.cannot_evaluate,
    "VolumeBinding": volume_binding.cannot_evaluate,
    "VolumeZone": volume_zone.cannot_evaluate,
    "DynamicResources": dynamic_resources.cannot_evaluate,
}
"""The filters on volumes and device claims, and whether each cannot evaluate a pod."""

STORAGE_FILTERS = frozenset(_CANNOT_EVALUATE)


@dataclass(frozen=True, slots=True)
class FilterSettings:
    """The settings of a KubeSchedulerConfiguration for the in-tree filters, and one of our own.

    See :class:`NodeResourcesFit`, :class:`NodeAffinity` and :class:`PodTopologySpread`; for
    ``frees_victims``, :class:`DynamicResources`.
    """

    ignored: frozenset[str] = field(default_factory=frozenset)
    ignored_groups: frozenset[str] = field(default_factory=frozenset)
    added_affinity: NodeSelector | None = None
    default_spread: tuple[SpreadConstraint, ...] = ()
    frees_victims: bool = False


def configured_filters(settings: FilterSettings) -> tuple[Filter, ...]:
    """Return the in-tree filters with ``settings``; the default settings return IN_TREE."""
    changed: dict[str, Filter] = {
        each.name: each
        for each in (
            NodeResourcesFit(ignored=settings.ignored, ignored_groups=settings.ignored_groups),
            NodeAffinity(added=settings.added_affinity),
            PodTopologySpread(defaults=settings.default_spread),
            DynamicResources(frees_victims=settings.frees_victims),
        )
    }
    return tuple(changed.get(each.name, each) for each in IN_TREE)


class UnknownFilterError(InputError, ValueError):
    """A filter name that is not in the table; the message lists the known ones."""


def filters_named(names: Sequence[str], among: Sequence[Filter] = IN_TREE) -> tuple[Filter, ...]:
    """Return the filters with these ``names``, in kube-scheduler's order.

    Raise UnknownFilterError for an unknown name.
    """
    known = {each.name: each for each in among}
    for name in names:
        if name not in known:
            raise UnknownFilterError(
                f"unknown filter {name!r}; expected some of {', '.join(known)}"
            )
    return tuple(each for each in among if each.name in names)


def reads_workloads(filters: Sequence[Filter]) -> bool:
    """Return whether any of ``filters`` reads Services and controllers."""
    return any(isinstance(each, PodTopologySpread) and each.defaults for each in filters)


def not_evaluated(
    pod: Pod, snapshot: Snapshot, release: Release, filters: Sequence[Filter] = IN_TREE
) -> frozenset[str]:
    """Return the names of those of ``filters`` that cannot fully evaluate ``pod``.

    A filter cannot if allocated devices have binding conditions, or if the snapshot does not
    contain the objects that a claim depends on. If a filter refuses every node in its PreFilter,
    pass only the filters up to that one: upstream runs no others.
    """
    if pod.storage is None:
        return frozenset()
    names = [each.name for each in filters if each.name in _CANNOT_EVALUATE]
    return frozenset(name for name in names if _CANNOT_EVALUATE[name](pod, snapshot, release))


__all__ = [
    "IN_TREE",
    "NOTHING_TO_CHECK",
    "STORAGE_FILTERS",
    "DeferredPodScheduling",
    "DynamicResources",
    "Filter",
    "FilterPlugin",
    "FilterSettings",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeDeclaredFeatures",
    "NodeFilter",
    "NodeName",
    "NodePorts",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "NodeVolumeLimits",
    "Pipeline",
    "PodTopologySpread",
    "PreFilter",
    "TaintToleration",
    "UnknownFilterError",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
    "configured_filters",
    "deallocation_result",
    "filters_named",
    "freed_claims",
    "has_to_fit_beside",
    "in_default_order",
    "is_claim_conflict",
    "is_counted_beside",
    "is_recorded",
    "node_releasing_devices",
    "not_evaluated",
    "reads_workloads",
    "run_pre_filters",
]
