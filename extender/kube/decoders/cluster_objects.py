"""Cluster objects other than pods and storage, decoded to what decisions read of them.

Nodes, PodDisruptionBudgets, namespaces and PriorityClasses; of Services and controllers, the
selector of their pods. Every decoder raises ObjectError.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from extender.kube.decoders import core_v1_types
from extender.kube.decoders.typed_decoder import (
    Decode,
    amounts_of,
    label_selector_of,
    object_decoder,
)
from policies.kubernetes.default_selector import (
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
    PodSelectingObject,
)
from policies.kubernetes.pod_requests import as_resources
from policies.kubernetes.quantity import units
from policies.kubernetes.selectors import Labels, LabelSelector, Taint, equals_all
from policies.kubernetes.snapshot import DisruptionBudget, Node


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace's name and labels."""

    name: str
    labels: Labels


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A PriorityClass: the priority that admission sets on pods that name it."""

    name: str
    value: int
    is_default: bool
    preempts: bool


def _node(shape: core_v1_types.NodeV1) -> Node:
    spec = shape.spec or core_v1_types.NodeSpecV1()
    status = shape.status or core_v1_types.NodeStatusV1()
    amounts = amounts_of("status.allocatable", status.allocatable)
    preemption = spec.podPreemptionPolicy
    return Node(
        name=shape.metadata.name,
        labels=shape.metadata.labels or {},
        taints=tuple(Taint(t.key, t.value or "", t.effect) for t in spec.taints or ()),
        unschedulable=bool(spec.unschedulable),
        allocatable=as_resources(amounts),
        allowed_pods=units(amounts.get("pods", 0)),
        declared_features=_interned_features(tuple(status.declaredFeatures or ())),
        resize_preemption_disabled=bool(preemption and preemption.disableResizePreemption),
    )


_interned_features = lru_cache(maxsize=256)(frozenset[str])


def _budget(shape: core_v1_types.PodDisruptionBudgetV1) -> DisruptionBudget:
    spec = shape.spec or core_v1_types.PodDisruptionBudgetSpecV1()
    status = shape.status or core_v1_types.PodDisruptionBudgetStatusV1()
    return DisruptionBudget(
        namespace=shape.metadata.namespace or "default",
        name=shape.metadata.name,
        selector=label_selector_of("spec.selector", spec.selector),
        allowed=status.disruptionsAllowed or 0,
        disrupted=frozenset(status.disruptedPods or ()),
        desired_healthy=status.desiredHealthy or 0,
    )


def _namespace(shape: core_v1_types.NamespaceV1) -> Namespace:
    return Namespace(shape.metadata.name, shape.metadata.labels or {})


def _priority_class(shape: core_v1_types.PriorityClassV1) -> PriorityClass:
    preempts = shape.preemptionPolicy != "Never"
    return PriorityClass(shape.metadata.name, shape.value, bool(shape.globalDefault), preempts)


decode_node = object_decoder("Node", core_v1_types.NodeV1, _node)
decode_budget = object_decoder("PodDisruptionBudget", core_v1_types.PodDisruptionBudgetV1, _budget)
decode_namespace = object_decoder("Namespace", core_v1_types.NamespaceV1, _namespace)
decode_priority_class = object_decoder(
    "PriorityClass", core_v1_types.PriorityClassV1, _priority_class
)


def _decode_by_map(kind: str) -> Decode[PodSelectingObject]:
    def convert(shape: core_v1_types.MapSelectorWorkloadV1) -> PodSelectingObject:
        labels = None if shape.spec is None else shape.spec.selector
        selector = None if labels is None else LabelSelector(equals_all(labels))
        return _workload(kind, shape.metadata, selector)

    return object_decoder(kind, core_v1_types.MapSelectorWorkloadV1, convert)


def _decode_by_selector(kind: str) -> Decode[PodSelectingObject]:
    def convert(shape: core_v1_types.LabelSelectorWorkloadV1) -> PodSelectingObject:
        selector = None if shape.spec is None else shape.spec.selector
        return _workload(kind, shape.metadata, label_selector_of("spec.selector", selector))

    return object_decoder(kind, core_v1_types.LabelSelectorWorkloadV1, convert)


def _workload(
    kind: str, meta: core_v1_types.ObjectMetaV1, selector: LabelSelector | None
) -> PodSelectingObject:
    return PodSelectingObject(kind, meta.namespace or "default", meta.name, selector)


WORKLOAD_DECODERS: Mapping[str, Decode[PodSelectingObject]] = {
    SERVICE: _decode_by_map(SERVICE),
    REPLICATION_CONTROLLER: _decode_by_map(REPLICATION_CONTROLLER),
    REPLICA_SET: _decode_by_selector(REPLICA_SET),
    STATEFUL_SET: _decode_by_selector(STATEFUL_SET),
}
"""The decoder of each kind of workload."""
