"""Stages: a cluster without sockets on a virtual clock, with short methods to act and to read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import orjson

from extender.kube.decoders.object_meta import format_time
from extender.kube.rest.client import Client, PatchType, Propagation
from extender.kube.rest.resources import PODS, REPLICA_SETS, Resource
from fakeapi import VirtualCluster
from fakeapi.testing.faults import Fault
from tests.builders import Document, encoded, manifest

CONFIG_MAPS = Resource("", "v1", "configmaps", namespaced=True)
EVENTS = Resource("", "v1", "events", namespaced=True)
DEPLOYMENTS = Resource("apps", "v1", "deployments", namespaced=True)
JOBS = Resource("batch", "v1", "jobs", namespaced=True)
CLONE_SETS = Resource("apps.kruise.io", "v1alpha1", "clonesets", namespaced=True)
SPREADS = Resource("apps.kruise.io", "v1beta1", "workloadspreads", namespaced=True)
OLD_SPREADS = Resource("apps.kruise.io", "v1alpha1", "workloadspreads", namespaced=True)
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", namespaced=False)


def decode(raw: Any) -> Document:
    """Decode a whole object."""
    document: Document = orjson.loads(bytes(raw))
    return document


class ApiAccess:
    """Short methods that write and read objects through a client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def client(self) -> Client:
        return self._client

    async def create(self, resource: Resource, document: Document) -> Document:
        """Create an object; the server assigns its UID."""
        usual = "default" if resource.namespaced else ""
        place = resource.collection(document["metadata"].get("namespace", usual))
        return await self.client.create(place, encoded(document), decode)

    async def update(self, resource: Resource, document: Document, subresource: str = "") -> None:
        """Replace an object, or a subresource of it."""
        meta = document["metadata"]
        usual = "default" if resource.namespaced else ""
        path = resource.object(meta["name"], meta.get("namespace", usual))
        path = path.subresource(subresource) if subresource else path
        await self.client.update(path, encoded(document), decode)

    async def delete(
        self,
        resource: Resource,
        name: str,
        how: Propagation | None = None,
        namespace: str = "default",
    ) -> None:
        """Delete an object."""
        place = namespace if resource.namespaced else ""
        await self.client.delete(resource.object(name, place), propagation=how)

    async def end(self, name: str, grace: int | None = 0) -> None:
        """Delete a pod at once, or with another grace period; None is the pod's own."""
        await self.client.delete(PODS.object(name, "default"), grace_period_seconds=grace)

    async def evict(self, name: str, **fields: Any) -> None:
        """Evict a pod."""
        body = manifest("Eviction", name, version="policy/v1", **fields)
        path = PODS.object(name, "default").subresource("eviction")
        await self.client.create(path, encoded(body), decode)

    async def bind(self, name: str, node: str, namespace: str = "default") -> None:
        """Bind a pod to a node."""
        body = manifest("Binding", name, namespace=namespace, target={"kind": "Node", "name": node})
        path = PODS.object(name, namespace).subresource("binding")
        await self.client.create(path, encoded(body), decode)

    async def patch(
        self, resource: Resource, name: str, change: Document, namespace: str = "default"
    ) -> None:
        """Merge a change into an object, or into its status if that is all that changes."""
        path = resource.object(name, namespace if resource.namespaced else "")
        path = path.subresource("status") if set(change) == {"status"} else path
        await self.client.patch(path, PatchType.MERGE, encoded(change), decode)

    async def set_replicas(self, replicas: int, name: str = "web") -> None:
        """Set the number of replicas of a ReplicaSet."""
        await self.patch(REPLICA_SETS, name, {"spec": {"replicas": replicas}})

    async def get(self, resource: Resource, name: str, namespace: str = "default") -> Document:
        """Return an object that exists."""
        found = await self.find(resource, name, namespace)
        assert found is not None, f"there is no {name} in {resource}"
        return found

    async def pod(self, name: str) -> Document:
        """Return a pod that exists."""
        return await self.get(PODS, name)

    async def find(
        self, resource: Resource, name: str, namespace: str = "default"
    ) -> Document | None:
        """Return an object, None if there is none."""
        path = resource.object(name, namespace if resource.namespaced else "")
        return await self.client.find(path, decode)

    async def status_of(self, resource: Resource, name: str = "web") -> Document:
        """Return the status of an object that exists; {} if it has none."""
        return (await self.get(resource, name)).get("status") or {}

    async def all(self, resource: Resource) -> Sequence[Document]:
        """Return all objects of a resource."""
        return (await self.client.list(resource, decode)).items

    async def names(self, resource: Resource = CONFIG_MAPS) -> list[str]:
        """Return the names of all objects of a resource, without those that every cluster has."""
        names = [each["metadata"]["name"] for each in await self.all(resource)]
        return sorted(name for name in names if not name.startswith(("kube-", "default")))

    async def list_events(self) -> list[tuple[str, str, str]]:
        """Return reason, object and message of all Events."""
        events = await self.all(EVENTS)
        return [(e["reason"], e["involvedObject"]["name"], e["message"]) for e in events]


class Stage(ApiAccess):
    """A cluster without sockets, and short methods that act on it."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster

    @property
    def client(self) -> Client:
        return self.cluster.client

    @property
    def now(self) -> str:
        """The time of the cluster as Kubernetes writes it."""
        return format_time(self.cluster.clock.now_ns())

    def load(self, *things: Document) -> None:
        """Store objects as they are, valid or not."""
        self.cluster.world.put_all(things)

    def plan_faults(self, *faults: Fault, agent: str = "") -> None:
        """Apply faults from now on, to all requests or to those of one client."""
        if faults:
            self.cluster.faults.plan(*(each.by(agent) if agent else each for each in faults))

    async def passes(self, seconds: float = 1.0) -> None:
        """Advance the clock."""
        await self.cluster.clock.advance(seconds)

    async def names(self, resource: Resource = CONFIG_MAPS, *, after: float = 0) -> list[str]:
        """Return the names as of ``after`` seconds from now."""
        if after:
            await self.passes(after)
        return await super().names(resource)

    async def make_ready(self, name: str) -> None:
        """Make a pod run and be ready from now on."""
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": self.now}
        await self.patch(PODS, name, {"status": {"phase": "Running", "conditions": [ready]}})


def without_version(document: Mapping[str, Any]) -> Document:
    """Return a document without its resourceVersion."""
    metadata = {k: v for k, v in document["metadata"].items() if k != "resourceVersion"}
    return {**document, "metadata": metadata}


S = TypeVar("S", bound=Stage)
Opener = Callable[..., Awaitable[S]]


@asynccontextmanager
async def opener(kind: type[S], **defaults: Any) -> AsyncIterator[Opener[S]]:
    """Return a function that opens stages by options of a cluster; they end with the block.

    It loads objects into the cluster, and lets ``seconds`` pass.
    """
    async with AsyncExitStack() as stack:

        async def open_stage(
            run: str = "", *objects: Document, seconds: float = 0, **options: Any
        ) -> S:
            merged = {**defaults, **options, **({"run": run} if run else {})}
            stage = kind(await stack.enter_async_context(VirtualCluster(**merged)))
            stage.load(*objects)
            if seconds:
                await stage.passes(seconds)
            return stage

        yield open_stage
