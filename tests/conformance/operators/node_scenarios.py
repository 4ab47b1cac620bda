"""A node whose kubelet stops to answer for a while."""

from __future__ import annotations

import json
from typing import Any, Final

from tests.builders import Document, manifest
from tests.conformance.clusters.watched_cluster import WatchedCluster
from tests.conformance.operators.objects import containers, has_condition, in_namespace

_SILENCE: Final = {"stages": [{"after": 2, "silent": True}, {"after": 40, "silent": False}]}
"""Longer than until the node is tainted, also if faults delay that."""

_APART: Final = {"key": "apart", "effect": "NoSchedule", "value": "yes"}
_UNREACHABLE: Final = "node.kubernetes.io/unreachable"


async def pods_of_a_silent_node_are_evicted(world: WatchedCluster, namespace: str) -> None:
    name = f"silent-{namespace}"
    annotations = {"kubelet.fakeapi/script": json.dumps(_SILENCE)}
    node = manifest("Node", name, metadata={"annotations": annotations}, spec={"taints": [_APART]})
    await world.create(node)
    for pod, seconds in (("impatient", 0), ("patient", 600)):
        await world.create(_pinned(pod, namespace, name, tolerationSeconds=seconds))
    await world.until(lambda: _ready(world, name, "True"))
    await world.until(lambda: _ready(world, name, "Unknown"))
    await world.until(lambda: _UNREACHABLE in _taints(world, name))
    await world.until(lambda: _ready(world, name, "True"))
    await world.until(lambda: _taints(world, name) == {_APART["key"]})
    await world.until(lambda: world.get("Pod", "impatient", namespace) is None)
    assert world.get("Pod", "patient", namespace) is not None
    await world.delete("Pod", "patient", namespace)
    await world.until(lambda: world.get("Pod", "patient", namespace) is None)
    await world.delete("Node", name, "")


SCENARIOS = (pods_of_a_silent_node_are_evicted,)


def _pinned(name: str, namespace: str, node: str, **toleration: Any) -> Document:
    """Build a pod on a node that tolerates that the node is unreachable for some time."""
    tolerations = [{"key": _UNREACHABLE, "operator": "Exists", "effect": "NoExecute", **toleration}]
    spec = {"nodeName": node, "tolerations": tolerations, **containers("v1")}
    return in_namespace("Pod", name, namespace, spec=spec)


def _ready(world: WatchedCluster, name: str, value: str) -> bool:
    return has_condition(world, "Node", name, "", type="Ready", status=value)


def _taints(world: WatchedCluster, name: str) -> set[str]:
    node = world.get("Node", name, "") or {"spec": {}}
    return {taint["key"] for taint in node["spec"].get("taints") or []}
