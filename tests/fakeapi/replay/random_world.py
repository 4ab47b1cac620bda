"""A world that changes at random: users, controllers and a storage administrator, by a seed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import orjson

from extender.kube.informers.reflector import ReflectorContext
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client, PatchType
from extender.kube.rest.clock import Clock
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.resources import NAMESPACES, NODES, PODS, REPLICA_SETS, Resource
from extender.recording.event_writer import REDACTED, RecordingWriter
from extender.recording.files import RecordingFile
from extender.recording.recorder import Recorder
from extender.recording.redaction import redact
from extender.recording.resource_selection import ALL, make_plan
from fakeapi import VirtualCluster
from tests.builders import node_json
from tests.builders.definitions import definition
from tests.builders.replicas import a_replica_set

Document = dict[str, Any]

GADGETS = Resource("example.com", "v1", "gadgets", namespaced=True)
GADGET_DEFINITION = definition("example.com/v1", "Gadget")
SPACES = ("default", "team-a", "team-b")


def a_pod(name: str, namespace: str, **spec: Any) -> Document:
    container: Document = {"name": "c", "image": "i", "args": ["--token=x"]}
    container["env"] = [{"name": "PASSWORD", "value": "s3cret"}]
    metadata = {"name": name, "namespace": namespace}
    spec = {"containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class Evolution:
    """What happens by chance; every step is one thing, and refusals are part of it."""

    def __init__(self, cluster: VirtualCluster, seed: int) -> None:
        self._cluster = cluster
        self._client = cluster.client
        self._rng = Random(seed)

    def prepare(self) -> None:
        """Begin with something: a custom resource, a namespace, nodes, a ReplicaSet."""
        spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACES[1]}}]
        nodes = [node_json(f"node-{n}") for n in range(2)]
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
        secret["data"] = {"key": "c2VjcmV0"}
        self._cluster.load([GADGET_DEFINITION, *spaces, *nodes, a_replica_set(replicas=2), secret])

    async def step(self) -> None:
        acts = (
            self._create_pod,
            self._run_pod,
            self._delete_pod,
            self._label_pod,
            self._scale,
            self._create_replica_set,
            self._touch_gadget,
            self._touch_namespace,
            self._touch_node,
        )
        with suppress(ApiError):
            await self._rng.choice(acts)()

    def upset(self) -> None:
        """Compact, or turn back and forth."""
        if self._rng.random() < 0.5:
            self._cluster.api.store.compact(self._cluster.api.store.version)
        else:
            name = self._cluster.snapshot()
            self._cluster.restore(name)

    async def _create_pod(self) -> None:
        name, space = f"p{self._rng.randrange(6)}", self._rng.choice(SPACES)
        on = {"nodeName": "node-0"} if self._rng.random() < 0.5 else {}
        await self._create(PODS, space, a_pod(name, space, **on))

    async def _run_pod(self) -> None:
        space, name = await self._some(PODS)
        status = {"phase": self._rng.choice(("Running", "Failed")), "podIP": "10.0.0.1"}
        path = PODS.object(name, space).subresource("status")
        body = orjson.dumps({"status": status})
        await self._client.patch(path, PatchType.MERGE, body, bytes)

    async def _delete_pod(self) -> None:
        space, name = await self._some(PODS)
        grace = self._rng.choice((0, 0, 30))
        await self._client.delete(PODS.object(name, space), grace_period_seconds=grace)

    async def _label_pod(self) -> None:
        space, name = await self._some(PODS)
        labels = {"team": str(self._rng.randrange(3))}
        await self._patch(PODS, name, space, {"metadata": {"labels": labels}})

    async def _scale(self) -> None:
        space, name = await self._some(REPLICA_SETS)
        await self._patch(REPLICA_SETS, name, space, {"spec": {"replicas": self._rng.randrange(4)}})

    async def _create_replica_set(self) -> None:
        name, space = f"rs{self._rng.randrange(2)}", self._rng.choice(SPACES)
        body = a_replica_set(name, namespace=space, replicas=1)
        del body["metadata"]["uid"]
        await self._create(REPLICA_SETS, space, body)

    async def _touch_gadget(self) -> None:
        name = f"g{self._rng.randrange(2)}"
        path = GADGETS.object(name, "default")
        if self._rng.random() < 0.4:
            await self._client.delete(path)
        else:
            head = {"apiVersion": "example.com/v1", "kind": "Gadget"}
            body = {**head, "metadata": {"name": name}, "size": self._rng.randrange(9)}
            await self._create(GADGETS, "default", body)

    async def _touch_namespace(self) -> None:
        if self._rng.random() < 0.5:
            await self._client.delete(NAMESPACES.object(SPACES[2]))
        else:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACES[2]}}
            await self._create(NAMESPACES, "", body)

    async def _touch_node(self) -> None:
        labels = {"zone": str(self._rng.randrange(9))}
        await self._patch(NODES, "node-1", "", {"metadata": {"labels": labels}})

    async def _create(self, resource: Resource, space: str, body: Document) -> None:
        await self._client.create(resource.collection(space), orjson.dumps(body), bytes)

    async def _patch(self, resource: Resource, name: str, space: str, body: Document) -> None:
        path = resource.object(name, space)
        await self._client.patch(path, PatchType.MERGE, orjson.dumps(body), bytes)

    async def _some(self, resource: Resource) -> tuple[str, str]:
        listed = await self._client.list(resource, lambda raw: orjson.loads(bytes(raw)))
        if not listed.items:
            raise ApiError(404, "NotFound", "nothing there")
        metadata = self._rng.choice(listed.items)["metadata"]
        return metadata["namespace"], metadata["name"]


def contents(cluster: VirtualCluster) -> dict[tuple[str, str, str], Document]:
    """Return all objects that recordings follow, as recordings tell them, without versions."""
    found = {}
    for document in cluster.export():
        if document["kind"] in ("Event", "Lease"):
            continue
        metadata = document["metadata"]
        del metadata["resourceVersion"]
        key = document["kind"], metadata.get("namespace", ""), metadata["name"]
        found[key] = redact(document)
    return found


@asynccontextmanager
async def recording(client: Client, clock: Clock, path: Path, seed: int = 0) -> Any:
    """Record everything through a client while the block runs."""
    with RecordingFile(str(path)) as file:
        plan = await make_plan(client, (ALL,), "")
        tape = RecordingWriter(file.write, clock, REDACTED)
        stop = asyncio.Event()
        context = ReflectorContext(client, clock, Random(seed), quiet_log())
        recorder = Recorder(context, plan, tape)
        task = asyncio.create_task(recorder.run(stop))
        yield
        stop.set()
        await task
