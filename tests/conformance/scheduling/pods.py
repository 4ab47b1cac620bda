"""Nodes and pods for scenarios of scheduling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.builders import (
    NO_LABELS,
    Document,
    container_json,
    manifest,
    node_json,
    pdb_json,
    pod_json,
)
from tests.conformance.objects import NAMESPACE

ZONE: Final = "topology.kubernetes.io/zone"
PRIORITIES: Final = (1, 5, 10, 50, 100, 1000)


def priority_classes() -> list[Document]:
    """Return a PriorityClass for each priority of pending pods."""
    return [priority_class(value) for value in PRIORITIES]


def priority_class(value: int) -> Document:
    """Return the PriorityClass of a priority."""
    return manifest("PriorityClass", f"p{value}", value=value)


def small_node(
    name: str, cpu: str = "2", others: Mapping[str, str] = NO_LABELS, zone: str = ""
) -> Document:
    """Return a node, in a zone or in none; by default with two cores."""
    labels = {"kubernetes.io/hostname": name, **({ZONE: zone} if zone else {})}
    return node_json(name, cpu=cpu, others=others, labels=labels)


def bound_pod(name: str, on: str, cpu: str = "2", priority: int = 0, **fields: Any) -> Document:
    """Return a pod that runs on a node; by default all have the same start time."""
    fields = {"started": 1, "namespace": NAMESPACE, **fields}
    return pod_json(name, on=on, cpu=cpu, priority=priority, **fields)


def pending_pod(
    name: str, cpu: str = "2", priority: int = 100, others: Mapping[str, str] = NO_LABELS
) -> Document:
    """Return a pending pod as a client writes it; ``priority`` is one of PRIORITIES."""
    resources = {"requests": {"cpu": cpu, **others}, "limits": dict(others)}
    container = container_json(image="registry.example/pause:3", resources=resources)
    spec = {"containers": [container], "priorityClassName": f"p{priority}"}
    return manifest("Pod", name, namespace=NAMESPACE, spec=spec)


def admitted(pod: Document) -> Document:
    """Return a pending pod with the fields that admission adds, to be stored as it is."""
    priority = int(pod["spec"]["priorityClassName"].removeprefix("p"))
    added = {"priority": priority, "schedulerName": "default-scheduler"}
    return {**pod, "spec": {**pod["spec"], **added}, "status": {"phase": "Pending"}}


def budget(name: str, allowed: int, match: Mapping[str, str]) -> Document:
    """Return a disruption budget."""
    return pdb_json(name, match=match, allowed=allowed, namespace=NAMESPACE)
