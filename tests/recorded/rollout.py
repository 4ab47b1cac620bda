"""Makes tests/recorded/rollout.jsonl.gz: a quarter of an hour of a small cluster.

    .venv/bin/python -m tests.recorded.rollout

Nodes with simulated kubelets, a ReplicaSet that is scaled up and down, a pod that a client deletes,
a namespace that is created and deleted, and a ReplicaSet that is deleted with its pods: by
fakeapi's own controllers, on a virtual clock. No scheduler runs: this module binds the pods in
turn.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from extender.kube.rest.resources import NAMESPACES, PODS, REPLICA_SETS
from fakeapi import VirtualCluster
from tests.builders import Document, manifest, workload_json
from tests.stage import Stage

FILE = Path(__file__).with_name("rollout.jsonl.gz")

_SCRIPT = {
    "register": [{"name": "node-{}", "count": 3, "capacity": {"cpu": "4", "memory": "8Gi"}}],
    "pods": [{"match": {"labels": {"app": "*"}}, "start": "2s", "stages": [{"after": "3s"}]}],
    "events": False,
}


def a_replica_set(name: str, namespace: str, replicas: int) -> Document:
    """Build a ReplicaSet whose pods have arguments and terminate within five seconds."""
    container = {"name": "web", "image": "registry.example/web:1", "args": ["--port=8080"]}
    pod = {"containers": [container], "terminationGracePeriodSeconds": 5}
    return workload_json("ReplicaSet", name, replicas, namespace=namespace, pod=pod)


class BindingStage(Stage):
    """A stage that binds pods to the nodes in turn."""

    bound = 0

    async def passes(self, seconds: float = 60) -> None:
        """Let time pass; pods without a node are bound within a second."""
        for _ in range(int(seconds)):
            await super().passes(1)
            for pod in await self.all(PODS):
                if "nodeName" not in pod["spec"]:
                    name, namespace = (pod["metadata"][key] for key in ("name", "namespace"))
                    await self.bind(name, f"node-{self.bound % 3}", namespace)
                    self.bound += 1


async def make(path: Path) -> None:
    """Record the cluster."""
    run = "gc,namespaces,replicaset,kubelet"
    async with VirtualCluster(run=run, seed=11, kubelet=_SCRIPT) as cluster:
        stage = BindingStage(cluster)
        await cluster.clock.advance(5)
        with cluster.record(path):
            await stage.create(REPLICA_SETS, a_replica_set("web", "default", 3))
            await stage.passes()
            for replicas in (6, 4):
                await stage.patch(REPLICA_SETS, "web", {"spec": {"replicas": replicas}})
                await stage.passes()
            first = (await stage.all(PODS))[0]["metadata"]
            await stage.delete(PODS, first["name"])
            await stage.passes()
            await stage.create(NAMESPACES, manifest("Namespace", "trial"))
            await stage.create(REPLICA_SETS, a_replica_set("api", "trial", 2))
            await stage.passes(120)
            await stage.delete(NAMESPACES, "trial")
            await stage.passes()
            await stage.delete(REPLICA_SETS, "web")
            await stage.passes(480)


if __name__ == "__main__":
    asyncio.run(make(FILE))
