"""Makes tests/recorded/spread.jsonl.gz: a quarter of an hour of two ReplicaSets that are spread.

    .venv/bin/python -m tests.recorded.spread

``web`` has three pods in zone a, marked by a patch, and all others in zone b, where a taint keeps
other pods away; it grows, shrinks, loses a pod that a client deletes, and its share of zone a
grows. ``batch`` prefers a zone that does not exist: its pods are given up there after half a minute
and are scheduled elsewhere. By fakeapi's own controllers, webhooks, scheduler and kubelets, on a
virtual clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from extender.kube.rest.client import PatchType
from extender.kube.rest.resources import PODS, REPLICA_SETS, Resource
from fakeapi import VirtualCluster

FILE = Path(__file__).with_name("spread.jsonl.gz")
RUN = "gc,namespaces,replicaset,workloadspread,scheduler,kubelet"
SPREADS = Resource("apps.kruise.io", "v1beta1", "workloadspreads", namespaced=True)

Document = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
_CAPACITY = {"cpu": "16", "memory": "32Gi"}
_TAINT = {"key": "elastic", "value": "yes", "effect": "NoSchedule"}
BOOK: Document = {
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
"""What the kubelets played."""


def a_replica_set(name: str, replicas: int) -> Document:
    """Write a ReplicaSet down whose pods ask for a CPU each."""
    labels = {"app": name}
    requests = {"cpu": "1", "memory": "1Gi"}
    container = {"name": "main", "image": "registry.example/web:1"}
    pod = {
        "containers": [{**container, "resources": {"requests": requests}}],
        "terminationGracePeriodSeconds": 5,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def zone(name: str) -> Document:
    """Write a subset's selector of nodes down."""
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [name]}]}


def a_spread(name: str, *subsets: Document, **strategy: Any) -> Document:
    """Write a WorkloadSpread of the ReplicaSet of its name down."""
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "WorkloadSpread",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name},
            "subsets": list(subsets),
            **strategy,
        },
    }


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


class Life:
    """What users do."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._cluster = cluster
        self._client = cluster.client

    async def create(self, resource: Resource, document: Document) -> None:
        """Create something, and wait a moment: who is to hear of it has heard of it then."""
        body = orjson.dumps(document)
        await self._client.create(resource.collection("default"), body, bytes)
        await self._cluster.clock.advance(1)

    async def patch(self, resource: Resource, name: str, change: Document) -> None:
        """Change something, and let a minute pass."""
        path = resource.object(name, "default")
        await self._client.patch(path, PatchType.MERGE, orjson.dumps(change), bytes)
        await self._cluster.clock.advance(60)

    async def grow(self, name: str, replicas: Iterable[int]) -> None:
        """Scale a ReplicaSet up, one pod a minute: so no two of them are alike."""
        for each in replicas:
            await self.scale(name, each)

    async def scale(self, name: str, replicas: int) -> None:
        """Scale a ReplicaSet, and let a minute pass."""
        await self.patch(REPLICA_SETS, name, {"spec": {"replicas": replicas}})

    async def delete_one(self, subset: str) -> None:
        """Delete the first pod of a subset, and let a minute pass."""
        listed = await self._client.list(PODS, lambda raw: orjson.loads(bytes(raw)))
        mark = f'"subset":"{subset}"'
        names = [
            each["metadata"]["name"]
            for each in listed.items
            if any(mark in note for note in each["metadata"].get("annotations", {}).values())
        ]
        await self._client.delete(PODS.object(min(names), "default"))
        await self._cluster.clock.advance(60)


async def make(path: Path) -> None:
    """Live that life, and record it."""
    async with VirtualCluster(run=RUN, seed=9, kubelet=BOOK) as cluster:
        life = Life(cluster)
        await cluster.clock.advance(5)
        with cluster.record(path):
            await life.create(SPREADS, WEB)
            await life.create(REPLICA_SETS, a_replica_set("web", 1))
            await life.grow("web", (2, 3, 4, 5, 6))
            await life.scale("web", 4)
            await life.delete_one("reserved")
            larger = [{**WEB["spec"]["subsets"][0], "maxReplicas": 4}, WEB["spec"]["subsets"][1]]
            await life.patch(SPREADS, "web", {"spec": {"subsets": larger}})
            await life.grow("web", (5, 6))
            await life.create(SPREADS, BATCH)
            await life.create(REPLICA_SETS, a_replica_set("batch", 2))
            await life.grow("batch", (2, 3))
            await life.scale("web", 3)
            await cluster.client.delete(REPLICA_SETS.object("batch", "default"))
            await cluster.clock.advance(60)


if __name__ == "__main__":
    asyncio.run(make(FILE))
