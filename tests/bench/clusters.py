"""The benchmark clusters, the same on every machine: nodes full of pods, and the pods that want in.

Everything is drawn from splitmix64 with state 42, so that another program can build the same
cluster. Node i has 32 cpu, 64Gi and 110 pods, and 30 pods of 1 cpu and 2Gi; for each pod three
numbers are drawn: its priority, its app, and whether its tier is web. All start times differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

Document = dict[str, Any]

_MASK = 2**64 - 1
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_PRIORITIES = (0, 10, 50, 100)


def cluster(nodes: int, pods_per_node: int = 30, budgets: int = 100) -> Iterator[Document]:
    """Give nodes, disruption budgets, and pods, in this order."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    yield from (_node(index) for index in range(nodes))
    yield from (_budget(index) for index in range(budgets))
    draw = _Splitmix(42)
    for node in range(nodes):
        for index in range(pods_per_node):
            yield _running(draw, node, index, nodes)


def preemptor(cpu: int, memory_gi: int) -> Document:
    """Give a pending pod of priority 1000 that asks ``cpu`` cores and ``memory_gi`` GiB."""
    name = f"preemptor-{cpu}-{memory_gi}"
    pod = _pod(name, {"app": "preemptor"}, 1000, {"cpu": str(cpu), "memory": f"{memory_gi}Gi"})
    return pod | {"status": {"phase": "Pending"}}


def encoded(document: Document) -> bytes:
    """Give a document as JSON."""
    return json.dumps(document, separators=(",", ":")).encode()


class _Splitmix:
    def __init__(self, state: int) -> None:
        self._state = state

    def __call__(self, bound: int) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return (mixed ^ (mixed >> 31)) % bound


def _node(index: int) -> Document:
    name = f"node-{index:05}"
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{index % 5}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _budget(index: int) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"pdb-{index}", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": f"app-{index}"}}},
        "status": {"disruptionsAllowed": index % 6},
    }


def _running(draw: _Splitmix, node: int, index: int, nodes: int) -> Document:
    priority = _PRIORITIES[draw(4)]
    app = f"app-{draw(500)}"
    tier = "web" if draw(10) == 0 else "batch"
    pod = _pod(
        f"p-{node:05}-{index:02}",
        {"app": app, "tier": tier},
        priority,
        {"cpu": "1", "memory": "2Gi"},
    )
    started = _EPOCH + timedelta(seconds=((30 * node + index) * 7919 + 12345) % (30 * nodes))
    pod["spec"]["nodeName"] = f"node-{node:05}"
    pod["status"] = {"phase": "Running", "startTime": f"{started:%Y-%m-%dT%H:%M:%SZ}"}
    return pod


def _pod(name: str, labels: dict[str, str], priority: int, requests: dict[str, str]) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": requests}}],
            "priority": priority,
            "schedulerName": "default-scheduler",
        },
    }
