"""Worlds with simulated kubelets, and short methods for observations."""

from __future__ import annotations

from typing import Any, Final

import orjson

from extender.kube.rest.client import PatchType
from extender.kube.rest.resources import LEASES, NODES, PODS, ObjectPath
from tests.builders import Document, manifest, without_none
from tests.stage import Stage, decode

SCRIPT: Final = "kubelet.fakeapi/script"


def node(name: str, **capacity: str) -> Document:
    """Build a node that knows nothing of itself but, perhaps, its capacity."""
    return manifest("Node", name, status={"capacity": capacity, "allocatable": capacity})


def pod(name: str, node: str = "n", *, script: str = "", **spec: Any) -> Document:
    """Build a pod that is bound to a node."""
    containers = spec.pop("containers", [{"name": "c", "image": "nginx:1"}])
    annotations = {SCRIPT: script} if script else None
    metadata = without_none(annotations=annotations, finalizers=spec.pop("finalizers", None))
    spec = {"nodeName": node, "containers": containers, **spec}
    return manifest("Pod", name, metadata=metadata, spec=spec)


def asking(**requests: str) -> Document:
    """Return the part of a pod's spec that says what its container requests."""
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}


class KubeletStage(Stage):
    """A stage with kubelets on it."""

    async def status(self, name: str) -> Document:
        """Return a pod's status."""
        status: Document = (await self.pod(name))["status"]
        return status

    async def phases(self) -> dict[str, str]:
        """Return all pods' phases, those of ready ones with an asterisk."""
        listed = await self.all(PODS)
        return {each["metadata"]["name"]: _phase(each["status"]) for each in listed}

    async def run(self, *pods: Document) -> None:
        """Create pods."""
        for each in pods:
            await self.create(PODS, each)

    async def tell_to_go(self, name: str, grace: int | None = None) -> None:
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
        """Return an object a script of its own."""
        await self.patch(resource, name, {"metadata": {"annotations": {SCRIPT: script}}})

    async def asked(self, node: str, path: str) -> Any:
        """Ask a node through the server's proxy."""
        raw = await self.client.get(ObjectPath(f"/api/v1/nodes/{node}/proxy/{path}"), bytes)
        return orjson.loads(raw) if raw.startswith(b"{") else raw.decode()

    async def report(self, name: str, status: Document) -> None:
        """Write into a pod's status, as controllers do."""
        path = PODS.object(name, "default").subresource("status")
        body = orjson.dumps({"status": status})
        await self.client.patch(path, PatchType.STRATEGIC, body, decode)


def _phase(status: Document) -> str:
    ready = [c["status"] for c in status.get("conditions", ()) if c["type"] == "Ready"]
    return f"{status['phase']}{'*' if ready == ['True'] else ''}"
