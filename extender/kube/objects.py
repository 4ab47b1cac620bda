"""Nodes, disruption budgets, namespaces and priority classes, decoded to the decisions' model."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from extender.kube import shapes
from extender.kube.decoding import amounts_of, decode_object, label_selector_of
from policies.model import DisruptionBudget, Node
from policies.quantity import units
from policies.requests import as_resources
from policies.selectors import Labels, Taint

_nodes = msgspec.json.Decoder(shapes.NodeV1)
_budgets = msgspec.json.Decoder(shapes.PodDisruptionBudgetV1)
_namespaces = msgspec.json.Decoder(shapes.NamespaceV1)
_priority_classes = msgspec.json.Decoder(shapes.PriorityClassV1)


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


def _node(shape: shapes.NodeV1) -> Node:
    spec, status = shape.spec or shapes.NodeSpecV1(), shape.status or shapes.NodeStatusV1()
    amounts = amounts_of("status.allocatable", status.allocatable)
    return Node(
        name=shape.metadata.name,
        labels=shape.metadata.labels or {},
        taints=tuple(Taint(t.key, t.value or "", t.effect) for t in spec.taints or ()),
        unschedulable=bool(spec.unschedulable),
        allocatable=as_resources(amounts),
        allowed_pods=units(amounts.get("pods", 0)),
    )


def _budget(shape: shapes.PodDisruptionBudgetV1) -> DisruptionBudget:
    spec, status = (
        shape.spec or shapes.PodDisruptionBudgetSpecV1(),
        shape.status or shapes.PodDisruptionBudgetStatusV1(),
    )
    return DisruptionBudget(
        namespace=shape.metadata.namespace or "default",
        name=shape.metadata.name,
        selector=label_selector_of("spec.selector", spec.selector),
        allowed=status.disruptionsAllowed or 0,
        disrupted=frozenset(status.disruptedPods or ()),
    )
