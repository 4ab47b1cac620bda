"""Nodes and pods for scenarios of scheduling: those that run, and those that want to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.builders import NO_LABELS, container_json, node_json, pdb_json, pod_json
from tests.conformance.objects import NAMESPACE, Document

ZONE: Final = "topology.kubernetes.io/zone"
PRIORITIES: Final = (1, 5, 10, 50, 100, 1000)
_PAUSE: Final = "registry.example/pause:3"


def classes() -> list[Document]:
    """Return a PriorityClass for each priority that pods want to have."""
    return [priority_class(value) for value in PRIORITIES]


def priority_class(value: int) -> Document:
    """Return the PriorityClass of a priority."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"p{value}"},
        "value": value,
    }


def host(
    name: str, cpu: str = "2", others: Mapping[str, str] = NO_LABELS, zone: str = ""
) -> Document:
    """Return a node, in a zone or in none; by default with two cores."""
    labels = {"kubernetes.io/hostname": name, **({ZONE: zone} if zone else {})}
    return node_json(name, cpu=cpu, others=others, labels=labels)


def resident(name: str, on: str, cpu: str = "2", priority: int = 0, **fields: Any) -> Document:
    """Return a pod that runs on a node; by default all have the same start time."""
    fields = {"started": 1, "namespace": NAMESPACE, **fields}
    return pod_json(name, on=on, cpu=cpu, priority=priority, **fields)


def newcomer(
    name: str, cpu: str = "2", priority: int = 100, others: Mapping[str, str] = NO_LABELS
) -> Document:
    """Return a pod that wants in, as a client would write it; ``priority`` is one of PRIORITIES."""
    requests = {"cpu": cpu, **others}
    resources = {"requests": requests, "limits": dict(others)}
    container = {**container_json(), "image": _PAUSE, "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"containers": [container], "priorityClassName": f"p{priority}"},
    }


def admitted(pod: Document) -> Document:
    """Return a newcomer with what a server adds to it, to be stored without asking for anything."""
    priority = int(pod["spec"]["priorityClassName"].removeprefix("p"))
    added = {"priority": priority, "schedulerName": "default-scheduler"}
    return {**pod, "spec": {**pod["spec"], **added}, "status": {"phase": "Pending"}}


def budget(name: str, allowed: int, match: Mapping[str, str]) -> Document:
    """Return a disruption budget."""
    return pdb_json(name, match=match, allowed=allowed, namespace=NAMESPACE)
