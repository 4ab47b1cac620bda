"""Scenarios of StatefulSets and DaemonSets."""

from __future__ import annotations

from typing import Any

from tests.builders import Document
from tests.conformance.clusters.watched_cluster import WatchedCluster
from tests.conformance.objects import NAMESPACE
from tests.conformance.operators.objects import containers, in_namespace, workload
from tests.conformance.workloads.runs import Scenario, Settle

_CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
_TEMPLATE = {"metadata": {"labels": {"app": "agent"}}, "spec": containers("v1")}


def stateful_set(replicas: int = 3, **spec: Any) -> Document:
    """Build a StatefulSet."""
    return workload("StatefulSet", "db", NAMESPACE, replicas, serviceName="db", **spec)


def daemon_set(pod: Document, **spec: Any) -> Document:
    """Build a DaemonSet."""
    template = {**_TEMPLATE, "spec": {**containers("v1"), **pod}}
    labels = {"matchLabels": {"app": "agent"}}
    own = {"selector": labels, "template": template, **spec}
    return in_namespace("DaemonSet", "agent", NAMESPACE, spec=own)


async def change(world: WatchedCluster, settle: Settle, kind: str, **spec: Any) -> None:
    """Change the spec of the workload, and wait for the outcome."""
    name = "db" if kind == "StatefulSet" else "agent"
    await world.patch(kind, name, {"spec": spec})
    await settle()


def image(name: str, **labels: str) -> Document:
    """Return a template with another image."""
    return {"metadata": {"labels": labels}, "spec": containers(name)}


def rolling(**parameters: Any) -> Document:
    """Return the strategy of a rolling update."""
    return {"type": "RollingUpdate", "rollingUpdate": parameters}


async def a_stateful_set_up_to_a_partition(world: WatchedCluster, settle: Settle) -> None:
    await world.create(stateful_set(updateStrategy=rolling(partition=2)))
    await settle()
    kind = "StatefulSet"
    await change(world, settle, kind, template=image("v2"))
    await world.delete("Pod", "db-0", gracePeriodSeconds=0)
    await settle()
    await change(world, settle, kind, updateStrategy=rolling(partition=0))
    await change(world, settle, kind, template=image("v1"))
    await change(world, settle, kind, replicas=1)


async def a_stateful_set_with_claims(world: WatchedCluster, settle: Settle) -> None:
    await world.create(stateful_set(2, volumeClaimTemplates=[_CLAIM]))
    await settle()
    parallel = stateful_set(2, podManagementPolicy="Parallel", volumeClaimTemplates=[_CLAIM])
    await world.create({**parallel, "metadata": {**parallel["metadata"], "name": "quick"}})
    await settle()


async def a_stateful_set_updated_on_delete(world: WatchedCluster, settle: Settle) -> None:
    await world.create(stateful_set(updateStrategy={"type": "OnDelete"}))
    await settle()
    await change(world, settle, "StatefulSet", template=image("v2"))
    await world.delete("Pod", "db-1", gracePeriodSeconds=0)
    await settle()


async def a_daemon_set_on_tainted_nodes(world: WatchedCluster, settle: Settle) -> None:
    await world.create(daemon_set({}))
    await settle()
    await change(world, settle, "DaemonSet", template=image("v2"))
    taints = [{"key": "dedicated", "effect": "NoExecute"}]
    await world.patch("Node", "node-2", {"spec": {"taints": taints}}, namespace="")
    await settle()
    await world.patch("Node", "node-1", {"spec": {"taints": None}}, namespace="")
    await settle()


async def a_daemon_set_on_chosen_nodes(world: WatchedCluster, settle: Settle) -> None:
    pod = {"nodeSelector": {"disk": "fast"}, "hostNetwork": True}
    await world.create(daemon_set(pod, updateStrategy={"type": "OnDelete"}))
    await settle()
    await world.patch("Node", "node-2", {"metadata": {"labels": {"disk": "fast"}}}, namespace="")
    await settle()
    await world.patch("Node", "node-0", {"metadata": {"labels": {"disk": None}}}, namespace="")
    await settle()


_TAINTED = {"spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}}
_FAST = {"metadata": {"labels": {"disk": "fast"}}}

SCENARIOS = (
    Scenario(a_stateful_set_up_to_a_partition),
    Scenario(a_stateful_set_with_claims),
    Scenario(a_stateful_set_updated_on_delete),
    Scenario(a_daemon_set_on_tainted_nodes, nodes=(("node-1", _TAINTED),)),
    Scenario(a_daemon_set_on_chosen_nodes, nodes=(("node-0", _FAST),)),
)
