"""The vectorized implementation of each filter (upstream's plugins/registry.go)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from policies.preemption.filtering import (
    DeferredPodScheduling,
    DynamicResources,
    Filter,
    InterPodAffinity,
    NodeAffinity,
    NodeDeclaredFeatures,
    NodeName,
    NodePorts,
    NodeResourcesFit,
    NodeUnschedulable,
    NodeVolumeLimits,
    PodTopologySpread,
    TaintToleration,
    VolumeBinding,
    VolumeRestrictions,
    VolumeZone,
)
from policies.preemption.vectorized.filtering import (
    inter_pod_affinity,
    node_ports,
    node_resources_fit,
    pod_topology_spread,
    static_node_filters,
    volume_filters,
)
from policies.preemption.vectorized.filtering.framework import FilterInput, VectorizedFilter


def vectorized_filter(each: Filter, filter_input: FilterInput) -> VectorizedFilter | None:
    """Return the vectorized filter; None if there is none, or if the filter refuses the pod."""
    match each:
        case NodeAffinity():
            return static_node_filters.vectorize_node_affinity(each, filter_input)
        case NodeResourcesFit():
            return node_resources_fit.vectorize_node_resources_fit(each, filter_input)
        case PodTopologySpread():
            return pod_topology_spread.vectorize_pod_topology_spread(each, filter_input)
        case InterPodAffinity():
            return inter_pod_affinity.vectorize_inter_pod_affinity(each, filter_input)
    found = _VECTORIZED_FILTERS.get(type(each))
    return None if found is None else found(each, filter_input)


_VECTORIZED_FILTERS: Mapping[
    type[Filter], Callable[[Filter, FilterInput], VectorizedFilter | None]
] = {
    NodeUnschedulable: static_node_filters.vectorize_node_unschedulable,
    NodeName: static_node_filters.vectorize_node_name,
    TaintToleration: static_node_filters.vectorize_taint_toleration,
    NodePorts: node_ports.vectorize_node_ports,
    DeferredPodScheduling: lambda *_: VectorizedFilter(),
    VolumeRestrictions: volume_filters.vectorize_volume_restrictions,
    NodeVolumeLimits: volume_filters.vectorize_node_volume_limits,
    VolumeBinding: volume_filters.vectorize_node_local,
    VolumeZone: volume_filters.vectorize_node_local,
    DynamicResources: volume_filters.vectorize_dynamic_resources,
    NodeDeclaredFeatures: lambda _, asked: static_node_filters.vectorize_node_declared_features(
        asked
    ),
}
"""The vectorized filters of filters without settings."""
