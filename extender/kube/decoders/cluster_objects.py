"""Nodes, disruption budgets, namespaces and priority classes, decoded to the decisions' model.

Services and controllers, decoded to the pods that they select.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from extender.kube.decoders import core_v1_types
from extender.kube.decoders.typed_decoder import (
    Decode,
    amounts_of,
    decode_object,
    label_selector_of,
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

_nodes = msgspec.json.Decoder(core_v1_types.NodeV1)
_budgets = msgspec.json.Decoder(core_v1_types.PodDisruptionBudgetV1)
_namespaces = msgspec.json.Decoder(core_v1_types.NamespaceV1)
_priority_classes = msgspec.json.Decoder(core_v1_types.PriorityClassV1)


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


def decode_node(raw: bytes) -> Node:
    """Decode a v1.Node. Raise ObjectError."""
    return decode_object("Node", _nodes, raw, _node)


def decode_budget(raw: bytes) -> DisruptionBudget:
    """Decode a policy/v1.PodDisruptionBudget. Raise ObjectError."""
    return decode_object("PodDisruptionBudget", _budgets, raw, _budget)


def decode_namespace(raw: bytes) -> Namespace:
    """Decode a v1.Namespace. Raise ObjectError."""
    return decode_object(
        "Namespace", _namespaces, raw, lambda s: Namespace(s.metadata.name, s.metadata.labels or {})
    )


def decode_priority_class(raw: bytes) -> PriorityClass:
    """Decode a scheduling.k8s.io/v1.PriorityClass. Raise ObjectError."""
    return decode_object(
        "PriorityClass",
        _priority_classes,
        raw,
        lambda s: PriorityClass(
            s.metadata.name, s.value, bool(s.globalDefault), s.preemptionPolicy != "Never"
        ),
    )


def _node(shape: core_v1_types.NodeV1) -> Node:
    spec, status = (
        shape.spec or core_v1_types.NodeSpecV1(),
        shape.status or core_v1_types.NodeStatusV1(),
    )
    amounts = amounts_of("status.allocatable", status.allocatable)
    return Node(
        name=shape.metadata.name,
        labels=shape.metadata.labels or {},
        taints=tuple(Taint(t.key, t.value or "", t.effect) for t in spec.taints or ()),
        unschedulable=bool(spec.unschedulable),
        allocatable=as_resources(amounts),
        allowed_pods=units(amounts.get("pods", 0)),
    )


def _budget(shape: core_v1_types.PodDisruptionBudgetV1) -> DisruptionBudget:
    spec, status = (
        shape.spec or core_v1_types.PodDisruptionBudgetSpecV1(),
        shape.status or core_v1_types.PodDisruptionBudgetStatusV1(),
    )
    return DisruptionBudget(
        namespace=shape.metadata.namespace or "default",
        name=shape.metadata.name,
        selector=label_selector_of("spec.selector", spec.selector),
        allowed=status.disruptionsAllowed or 0,
        disrupted=frozenset(status.disruptedPods or ()),
    )


_by_map = msgspec.json.Decoder(core_v1_types.MapSelectorWorkloadV1)
_by_selector = msgspec.json.Decoder(core_v1_types.LabelSelectorWorkloadV1)


def _decode_by_map(kind: str) -> Decode[PodSelectingObject]:
    def convert(shape: core_v1_types.MapSelectorWorkloadV1) -> PodSelectingObject:
        labels = None if shape.spec is None else shape.spec.selector
        selector = None if labels is None else LabelSelector(equals_all(labels))
        return _workload(kind, shape.metadata, selector)

    return lambda raw: decode_object(kind, _by_map, raw, convert)


def _decode_by_selector(kind: str) -> Decode[PodSelectingObject]:
    def convert(shape: core_v1_types.LabelSelectorWorkloadV1) -> PodSelectingObject:
        written = None if shape.spec is None else shape.spec.selector
        return _workload(kind, shape.metadata, label_selector_of("spec.selector", written))

    return lambda raw: decode_object(kind, _by_selector, raw, convert)


def _workload(
    kind: str, meta: core_v1_types.ObjectMetaV1, selector: LabelSelector | None
) -> PodSelectingObject:
    return PodSelectingObject(kind, meta.namespace or "default", meta.name, selector)


WORKLOAD_DECODERS: Mapping[str, Callable[[bytes], PodSelectingObject]] = {
    SERVICE: _decode_by_map(SERVICE),
    REPLICATION_CONTROLLER: _decode_by_map(REPLICATION_CONTROLLER),
    REPLICA_SET: _decode_by_selector(REPLICA_SET),
    STATEFUL_SET: _decode_by_selector(STATEFUL_SET),
}
"""The decoder of each kind of workload; each raises ObjectError."""
