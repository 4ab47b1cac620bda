"""Makes tests/recorded/rollout.jsonl.gz: a quarter of an hour of a small cluster's life.

    .venv/bin/python -m tests.recorded.rollout

Nodes with simulated kubelets, a ReplicaSet that grows and shrinks, a pod that a client deletes, a
namespace that is created and ends, and a ReplicaSet that goes with its pods: by fakeapi's own
controllers, on a virtual clock. There is no scheduler: this module binds the pods in turn.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson

from extender.kube.rest.client import PatchType
from extender.kube.rest.resources import NAMESPACES, PODS, REPLICA_SETS
from fakeapi import VirtualCluster

FILE = Path(__file__).with_name("rollout.jsonl.gz")

Document = dict[str, Any]

_BOOK = {
    "register": [{"name": "node-{}", "count": 3, "capacity": {"cpu": "4", "memory": "8Gi"}}],
    "pods": [{"match": {"labels": {"app": "*"}}, "start": "2s", "stages": [{"after": "3s"}]}],
    "events": False,
}


def a_replica_set(name: str, namespace: str, replicas: int) -> Document:
    labels = {"app": name}
    container = {"name": "web", "image": "registry.example/web:1", "args": ["--port=8080"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 5},
            },
        },
    }


class Life:
    """What users do, and the scheduler that there is not."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._cluster = cluster
        self._bound = 0

    async def pass_time(self, seconds: int) -> None:
        """Let time pass; pods without a node get one within a second."""
        for _ in range(seconds):
            await self._cluster.clock.advance(1)
            for pod in await self.pods():
                if "nodeName" not in pod["spec"]:
                    await self._bind(pod["metadata"])

    async def pods(self) -> list[Document]:
        listed = await self._cluster.client.list(PODS, lambda raw: orjson.loads(bytes(raw)))
        return list(listed.items)

    async def create(self, replica_set: Document) -> None:
        collection = REPLICA_SETS.collection(replica_set["metadata"]["namespace"])
        await self._cluster.client.create(collection, orjson.dumps(replica_set), bytes)

    async def scale(self, name: str, replicas: int) -> None:
        change = orjson.dumps({"spec": {"replicas": replicas}})
        path = REPLICA_SETS.object(name, "default")
        await self._cluster.client.patch(path, PatchType.MERGE, change, bytes)

    async def _bind(self, pod: Document) -> None:
        node, self._bound = f"node-{self._bound % 3}", self._bound + 1
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["name"]}}
        path = PODS.object(pod["name"], pod["namespace"]).subresource("binding")
        await self._cluster.client.create(path, orjson.dumps({**body, "target": target}), bytes)


async def make(path: Path) -> None:
    """Live that life, and record it."""
    run = "gc,namespaces,replicaset,kubelet"
    async with VirtualCluster(run=run, seed=11, kubelet=_BOOK) as cluster:
        client, life = cluster.client, Life(cluster)
        await cluster.clock.advance(5)
        with cluster.record(path):
            await life.create(a_replica_set("web", "default", 3))
            await life.pass_time(60)
            await life.scale("web", 6)
            await life.pass_time(60)
            await life.scale("web", 4)
            await life.pass_time(60)
            first = (await life.pods())[0]["metadata"]
            await client.delete(PODS.object(first["name"], "default"))
            await life.pass_time(60)
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trial"}}
            await client.create(NAMESPACES.collection(), orjson.dumps(space), bytes)
            await life.create(a_replica_set("api", "trial", 2))
            await life.pass_time(120)
            await client.delete(NAMESPACES.object("trial"))
            await life.pass_time(60)
            await client.delete(REPLICA_SETS.object("web", "default"))
            await life.pass_time(480)


if __name__ == "__main__":
    asyncio.run(make(FILE))
