"""A cluster that changes at random: users, controllers and a storage administrator, by a seed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from extender.kube.informers.reflector import ReflectorContext
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.resources import NAMESPACES, NODES, PODS, REPLICA_SETS, Resource
from extender.recording.event_writer import REDACTED, RecordingWriter
from extender.recording.files import RecordingFile
from extender.recording.recorder import Recorder
from extender.recording.redaction import redact
from extender.recording.resource_selection import ALL, make_plan
from fakeapi import VirtualCluster
from tests.builders import Document, manifest, node_json
from tests.builders.definitions import definition
from tests.builders.replicas import a_replica_set
from tests.stage import Stage

GADGETS = Resource("example.com", "v1", "gadgets", namespaced=True)
GADGET_DEFINITION = definition("example.com/v1", "Gadget")
SPACES = ("default", "team-a", "team-b")


def pod_with_secrets(name: str, namespace: str, **spec: Any) -> Document:
    """Build a pod whose arguments and environment recordings redact."""
    container: Document = {"name": "c", "image": "i", "args": ["--token=x"]}
    container["env"] = [{"name": "PASSWORD", "value": "s3cret"}]
    return manifest("Pod", name, namespace=namespace, spec={"containers": [container], **spec})


class RandomStage(Stage):
    """A cluster that random requests change."""

    def __init__(self, cluster: VirtualCluster, seed: int) -> None:
        super().__init__(cluster)
        self.rng = Random(seed)

    async def pick(self, resource: Resource) -> tuple[str, str]:
        """Return name and namespace of any object."""
        listed = await self.all(resource)
        if not listed:
            raise ApiError(404, "NotFound", "there are none")
        metadata = self.rng.choice(listed)["metadata"]
        return metadata["name"], metadata["namespace"]

    async def delete_pod(self, *grace: int) -> None:
        """Delete any pod, with any of these grace periods."""
        path = PODS.object(*await self.pick(PODS))
        await self.client.delete(path, grace_period_seconds=self.rng.choice(grace))


class RandomWorld(RandomStage):
    """Random requests of users and controllers, one in each step; refused ones are part of it."""

    def prepare(self) -> None:
        """Create a custom resource, a namespace, nodes, a ReplicaSet and a Secret."""
        secret = manifest("Secret", "s", data={"key": "c2VjcmV0"})
        nodes = [node_json(f"node-{n}") for n in range(2)]
        self.load(GADGET_DEFINITION, manifest("Namespace", SPACES[1]), *nodes)
        self.load(a_replica_set(replicas=2), secret)

    async def step(self) -> None:
        acts = (
            *(self._create_pod, self._run_pod, self._delete_pod, self._label_pod, self._scale),
            *(self._create_replica_set, self._change_gadget, self._change_namespace),
            self._change_node,
        )
        with suppress(ApiError):
            await self.rng.choice(acts)()

    def compact_or_restore(self) -> None:
        """Compact the history, or restore the present state."""
        if self.rng.random() < 0.5:
            self.cluster.api.store.compact(self.cluster.api.store.version)
        else:
            self.cluster.restore(self.cluster.snapshot())

    async def _create_pod(self) -> None:
        name, space = f"p{self.rng.randrange(6)}", self.rng.choice(SPACES)
        on = {"nodeName": "node-0"} if self.rng.random() < 0.5 else {}
        await self.create(PODS, pod_with_secrets(name, space, **on))

    async def _run_pod(self) -> None:
        name, space = await self.pick(PODS)
        status = {"phase": self.rng.choice(("Running", "Failed")), "podIP": "10.0.0.1"}
        await self.patch(PODS, name, {"status": status}, space)

    async def _delete_pod(self) -> None:
        await self.delete_pod(0, 0, 30)

    async def _label_pod(self) -> None:
        name, space = await self.pick(PODS)
        labels = {"team": str(self.rng.randrange(3))}
        await self.patch(PODS, name, {"metadata": {"labels": labels}}, space)

    async def _scale(self) -> None:
        name, space = await self.pick(REPLICA_SETS)
        change = {"spec": {"replicas": self.rng.randrange(4)}}
        await self.patch(REPLICA_SETS, name, change, space)

    async def _create_replica_set(self) -> None:
        name, space = f"rs{self.rng.randrange(2)}", self.rng.choice(SPACES)
        document = a_replica_set(name, namespace=space, replicas=1)
        del document["metadata"]["uid"]
        await self.create(REPLICA_SETS, document)

    async def _change_gadget(self) -> None:
        name = f"g{self.rng.randrange(2)}"
        if self.rng.random() < 0.4:
            await self.delete(GADGETS, name)
        else:
            size = self.rng.randrange(9)
            gadget = manifest("Gadget", name, version="example.com/v1", size=size)
            await self.create(GADGETS, gadget)

    async def _change_namespace(self) -> None:
        if self.rng.random() < 0.5:
            await self.delete(NAMESPACES, SPACES[2])
        else:
            await self.create(NAMESPACES, manifest("Namespace", SPACES[2]))

    async def _change_node(self) -> None:
        labels = {"zone": str(self.rng.randrange(9))}
        await self.patch(NODES, "node-1", {"metadata": {"labels": labels}})


def contents(cluster: VirtualCluster) -> dict[tuple[str, str, str], Document]:
    """Return all recorded objects, redacted and without versions."""
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
        writer = RecordingWriter(file.write, clock, REDACTED)
        stop = asyncio.Event()
        context = ReflectorContext(client, clock, Random(seed), quiet_log())
        recorder = Recorder(context, plan, writer)
        task = asyncio.create_task(recorder.run(stop))
        yield
        stop.set()
        await task
