"""Just enough of a kubelet for tests that wait until a pod runs.

Every pod is bound to the one node, runs and is ready at once; told to go, it first stops being
ready, and then goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final

import msgspec
import orjson

from extender.kube.informers.reflector import Reflector
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client, PatchType
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.resources import PODS, ObjectPath

NODE: Final = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node", "labels": {"kubernetes.io/os": "linux"}},
    "spec": {},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}
_START: Final = "2026-01-01T00:00:00Z"
_CONDITIONS: Final = ("Initialized", "ContainersReady", "PodScheduled", "Ready")

Document = dict[str, Any]


@asynccontextmanager
async def kubelet(client: Client) -> AsyncIterator[None]:
    """Run pods until the block ends."""
    pods = _Pods(client)
    informer = Reflector(client, PODS, _decode, pods, SystemClock(), Random(1))
    running = [asyncio.create_task(work) for work in (informer.run(), pods.run())]
    try:
        yield
    finally:
        for task in running:
            task.cancel()
        await asyncio.wait(running)


class _Pods:
    """A sink of pods that keeps what is to be done in a queue."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._changed: asyncio.Queue[Document] = asyncio.Queue()

    def replace(self, items: Sequence[Document]) -> None:
        for item in items:
            self.upsert(item)

    def upsert(self, item: Document) -> None:
        self._changed.put_nowait(item)

    def remove(self, item: Document) -> None:
        """Nothing is kept of an object."""

    async def run(self) -> None:
        while True:
            thing = await self._changed.get()
            try:
                await self._sync(thing)
            except ApiError as error:
                if error.status not in (404, 409):  # it has changed; its next event tells how
                    raise

    async def _sync(self, thing: Document) -> None:
        path = PODS.object(thing["metadata"]["name"], thing["metadata"]["namespace"])
        leaving = "deletionTimestamp" in thing["metadata"]
        if leaving and not _is_ready(thing):
            await self._client.delete(path, grace_period_seconds=0)
        elif leaving:
            await self._report(path, {"conditions": _conditions("False")})
        elif "nodeName" not in thing["spec"]:
            target = {"kind": "Node", "name": "node"}
            binding = {"metadata": {"name": thing["metadata"]["name"]}, "target": target}
            await self._client.create(path.subresource("binding"), _encode(binding), _decode)
        elif not _is_ready(thing):
            await self._report(path, _running(thing))

    async def _report(self, path: ObjectPath, status: Document) -> None:
        body = _encode({"status": status})
        await self._client.patch(path.subresource("status"), PatchType.MERGE, body, _decode)


def _decode(raw: msgspec.Raw) -> Document:
    document: Document = orjson.loads(bytes(raw))
    return document


def _encode(document: Document) -> bytes:
    return orjson.dumps({"apiVersion": "v1", **document})


def _is_ready(pod: Document) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _conditions(ready: str) -> list[Document]:
    return [
        {"type": kind, "status": ready if kind == "Ready" else "True", "lastTransitionTime": _START}
        for kind in _CONDITIONS
    ]


def _running(pod: Document) -> Document:
    containers = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": _START}},
        }
        for container in pod["spec"]["containers"]
    ]
    return {
        "phase": "Running",
        "podIP": "192.168.1.1",
        "podIPs": [{"ip": "192.168.1.1"}],
        "startTime": _START,
        "conditions": _conditions("True"),
        "containerStatuses": containers,
    }
