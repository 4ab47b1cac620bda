"""Clusters with simulated kubelets, and short ways to act on them and to read them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final

import orjson

from extender.controllers.process.controller_manager import (
    ComponentSwitch,
    ControllerManager,
    ManagerOptions,
)
from extender.kube.rest.client import Client, PatchType
from extender.kube.rest.resources import LEASES, NODES, PODS, ObjectPath
from fakeapi import VirtualCluster
from fakeapi.controlplane.components import components
from fakeapi.controlplane.kubelet.script_parser import load_script
from fakeapi.controlplane.kubelet.scripts import USER_AGENT, KubeletOptions, ScriptSource
from tests.builders import Document, container_json, manifest, without_none
from tests.stage import Stage, decode

SCRIPT: Final = "kubelet.fakeapi/script"


def node(name: str, **capacity: str) -> Document:
    """Build a node that has no status but its capacity."""
    return manifest("Node", name, status={"capacity": capacity, "allocatable": capacity})


def pod(name: str, node: str = "n", *, script: str = "", **spec: Any) -> Document:
    """Build a pod that is bound to a node."""
    containers = spec.pop("containers", [{"name": "c", "image": "nginx:1"}])
    annotations = {SCRIPT: script} if script else None
    metadata = without_none(annotations=annotations, finalizers=spec.pop("finalizers", None))
    spec = {"nodeName": node, "containers": containers, **spec}
    return manifest("Pod", name, metadata=metadata, spec=spec)


def asking(**requests: str) -> Document:
    """Return the containers of a pod's spec, which request resources."""
    return {"containers": [container_json("c", requests)]}


class KubeletStage(Stage):
    """A stage with kubelets on it."""

    async def status(self, name: str) -> Document:
        """Return a pod's status."""
        status: Document = (await self.pod(name))["status"]
        return status

    async def phases(self, *, after: float = 0) -> dict[str, str]:
        """Return all pods' phases after some seconds, those of ready ones with an asterisk."""
        if after:
            await self.passes(after)
        listed = await self.all(PODS)
        return {each["metadata"]["name"]: _phase(each["status"]) for each in listed}

    async def run(self, *pods: Document, seconds: float = 0) -> None:
        """Create pods, and let time pass."""
        for each in pods:
            await self.create(PODS, each)
        if seconds:
            await self.passes(seconds)

    async def delete_pod(self, name: str, grace: int | None = None) -> None:
        """Delete a pod, with a grace period of its own or the pod's."""
        await self.end(name, grace)

    async def conditions(self, name: str) -> dict[str, str]:
        """Return the statuses of a node's conditions."""
        found = await self.get(NODES, name)
        return {each["type"]: each["status"] for each in found["status"]["conditions"]}

    async def renewed(self, name: str) -> str:
        """Return the time of a node's lease."""
        lease = await self.get(LEASES, name, "kube-node-lease")
        time: str = lease["spec"]["renewTime"]
        return time

    async def say(self, resource: Any, name: str, script: str) -> None:
        """Write a script into an object's annotations."""
        await self.patch(resource, name, {"metadata": {"annotations": {SCRIPT: script}}})

    async def asked(self, node: str, path: str) -> Any:
        """Return what a node answers through the server's proxy."""
        raw = await self.client.get(ObjectPath(f"/api/v1/nodes/{node}/proxy/{path}"), bytes)
        return orjson.loads(raw) if raw.startswith(b"{") else raw.decode()

    async def report(self, name: str, status: Document) -> None:
        """Patch a pod's status, as controllers do."""
        path = PODS.object(name, "default").subresource("status")
        body = orjson.dumps({"status": status})
        await self.client.patch(path, PatchType.STRATEGIC, body, decode)


@asynccontextmanager
async def kubelets_of_a_client(
    cluster: VirtualCluster, script: ScriptSource = "", seed: int = 0
) -> AsyncIterator[ComponentSwitch]:
    """Run kubelets as a client of a cluster without any; faults apply to their requests."""
    client = Client(cluster.local_transport(USER_AGENT))
    kubelets = components(KubeletOptions(load_script(script), client))
    options = ManagerOptions(components=kubelets)
    manager = ControllerManager(client, cluster.clock, Random(seed), ("kubelet",), options)
    manager.start()
    try:
        yield manager["kubelet"]
    finally:
        await manager.stop()
        await client.close()


def _phase(status: Document) -> str:
    ready = [c["status"] for c in status.get("conditions", ()) if c["type"] == "Ready"]
    return f"{status['phase']}{'*' if ready == ['True'] else ''}"
