"""Makes tests/recorded/spread.jsonl.gz: a quarter of an hour of two WorkloadSpreads.

    .venv/bin/python -m tests.recorded.spread

``web`` has three pods in zone a, marked by a patch, and all others in zone b, where a taint keeps
other pods away; it grows, shrinks, loses a pod that a client deletes, and its share of zone a
grows. ``batch`` prefers a zone that does not exist: its pods are given up there after half a minute
and are scheduled elsewhere. By fakeapi's own controllers, webhooks, scheduler and kubelets, on a
virtual clock.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from extender.kube.rest.resources import PODS, REPLICA_SETS, Resource
from fakeapi import VirtualCluster
from tests.builders import Document, manifest, workload_json
from tests.stage import Stage

FILE = Path(__file__).with_name("spread.jsonl.gz")
RUN = "gc,namespaces,replicaset,workloadspread,scheduler,kubelet"
SPREADS = Resource("apps.kruise.io", "v1beta1", "workloadspreads", namespaced=True)

ZONE = "topology.kubernetes.io/zone"
_CAPACITY = {"cpu": "16", "memory": "32Gi"}
_TAINT = {"key": "elastic", "value": "yes", "effect": "NoSchedule"}
SIMULATION_SCRIPT: Document = {
    "register": [
        {"name": "a-{}", "count": 1, "capacity": _CAPACITY, "labels": {ZONE: "a"}},
        {
            "name": "b-{}",
            "count": 1,
            "capacity": _CAPACITY,
            "labels": {ZONE: "b"},
            "taints": [_TAINT],
        },
    ],
    "pods": [{"match": {"labels": {"app": "*"}}, "start": "2s", "stages": [{"after": "3s"}]}],
    "events": False,
}
"""The simulation script of the kubelets."""


def a_replica_set(name: str, replicas: int) -> Document:
    """Build a ReplicaSet whose pods request one CPU each."""
    requests = {"cpu": "1", "memory": "1Gi"}
    container = {"name": "main", "image": "registry.example/web:1"}
    pod = {
        "containers": [{**container, "resources": {"requests": requests}}],
        "terminationGracePeriodSeconds": 5,
    }
    return workload_json("ReplicaSet", name, replicas, pod=pod)


def zone(name: str) -> Document:
    """Return the node selector of a subset."""
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [name]}]}


def a_spread(name: str, *subsets: Document, **strategy: Any) -> Document:
    """Build a WorkloadSpread of the ReplicaSet with the same name."""
    target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name}
    spec = {"targetRef": target, "subsets": list(subsets), **strategy}
    return manifest("WorkloadSpread", name, spec=spec)


WEB = a_spread(
    "web",
    {
        "name": "reserved",
        "maxReplicas": 3,
        "requiredNodeSelector": zone("a"),
        "patch": {"metadata": {"labels": {"paid": "ahead"}}},
    },
    {
        "name": "elastic",
        "requiredNodeSelector": zone("b"),
        "tolerations": [{"key": "elastic", "operator": "Exists"}],
        "patch": {
            "spec": {"containers": [{"name": "main", "env": [{"name": "ZONE", "value": "b"}]}]}
        },
    },
)
BATCH = a_spread(
    "batch",
    {"name": "dreamt-of", "maxReplicas": 2, "requiredNodeSelector": zone("c")},
    {"name": "real", "requiredNodeSelector": zone("a")},
    scheduleStrategy={
        "type": "Adaptive",
        "adaptive": {"rescheduleCriticalSeconds": 30, "disableSimulationSchedule": True},
    },
)


class SlowStage(Stage):
    """A stage that lets time pass after each write, so that the controllers react to it."""

    async def create(self, resource: Resource, document: Document) -> Document:
        """Create an object, and let a second pass."""
        created = await super().create(resource, document)
        await self.passes()
        return created

    async def patch(
        self, resource: Resource, name: str, change: Document, namespace: str = "default"
    ) -> None:
        """Change an object, and let a minute pass."""
        await super().patch(resource, name, change, namespace)
        await self.passes(60)

    async def scale(self, name: str, *replicas: int) -> None:
        """Scale a ReplicaSet, and let a minute pass, once for each number."""
        for each in replicas:
            await self.patch(REPLICA_SETS, name, {"spec": {"replicas": each}})

    async def delete_one(self, subset: str) -> None:
        """Delete the first pod of a subset, and let a minute pass."""
        mark = f'"subset":"{subset}"'
        names = [
            each["metadata"]["name"]
            for each in await self.all(PODS)
            if any(mark in note for note in each["metadata"].get("annotations", {}).values())
        ]
        await self.delete(PODS, min(names))
        await self.passes(60)


async def make(path: Path) -> None:
    """Record the cluster; ReplicaSets grow by one pod a minute, so that no two pods are alike."""
    async with VirtualCluster(run=RUN, seed=9, kubelet=SIMULATION_SCRIPT) as cluster:
        stage = SlowStage(cluster)
        await cluster.clock.advance(5)
        with cluster.record(path):
            await stage.create(SPREADS, WEB)
            await stage.create(REPLICA_SETS, a_replica_set("web", 1))
            await stage.scale("web", 2, 3, 4, 5, 6, 4)
            await stage.delete_one("reserved")
            larger = [{**WEB["spec"]["subsets"][0], "maxReplicas": 4}, WEB["spec"]["subsets"][1]]
            await stage.patch(SPREADS, "web", {"spec": {"subsets": larger}})
            await stage.scale("web", 5, 6)
            await stage.create(SPREADS, BATCH)
            await stage.create(REPLICA_SETS, a_replica_set("batch", 2))
            await stage.scale("batch", 2, 3)
            await stage.scale("web", 3)
            await stage.delete(REPLICA_SETS, "batch")
            await stage.passes(60)


if __name__ == "__main__":
    asyncio.run(make(FILE))
