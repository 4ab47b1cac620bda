"""A world without sockets, and short ways to act in it and to look at it.

Objects are written down as briefly as a table allows. Their UIDs are their names, so that owners
can be named before they are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client, PatchType, Propagation
from extender.kube.rest.resources import NAMESPACES, NODES, PODS, Resource
from fakeapi import VirtualCluster

Document = dict[str, Any]

CONFIG_MAPS = Resource("", "v1", "configmaps", namespaced=True)
EVENTS = Resource("", "v1", "events", namespaced=True)
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", namespaced=False)


def thing(
    name: str,
    *owners: Document,
    kind: str = "ConfigMap",
    version: str = "v1",
    namespace: str = "default",
    finalizers: Iterable[str] = (),
) -> Document:
    """Build an object that does nothing but belong to others."""
    metadata: Document = {"name": name, "uid": name}
    if namespace:
        metadata["namespace"] = namespace
    if owners:
        metadata["ownerReferences"] = list(owners)
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def owner(name: str, kind: str = "ConfigMap", version: str = "v1", **fields: Any) -> Document:
    """Build a reference to an owner, whose UID is its name."""
    return {"apiVersion": version, "kind": kind, "name": name, "uid": name, **fields}


def blocking(name: str) -> Document:
    """Build a reference that the owner's deletion in the foreground waits for."""
    return owner(name, blockOwnerDeletion=True)


def running_pod(name: str, node: str, *, namespace: str = "default", **spec: Any) -> Document:
    """Build a pod that runs on a node and is ready."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": name},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}], **spec},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def decode(raw: Any) -> Document:
    """Read a whole object."""
    document: Document = orjson.loads(bytes(raw))
    return document


class Stage:
    """A cluster, and what tests do with it."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster

    @property
    def client(self) -> Client:
        return self.cluster.client

    def load(self, *things: Document) -> None:
        """Put objects there, as they are."""
        self.cluster.load(things)

    async def passes(self, seconds: float = 1.0) -> None:
        """Let time pass."""
        await self.cluster.clock.advance(seconds)

    async def create(self, resource: Resource, document: Document) -> Document:
        """Create an object; its UID is the server's."""
        place = resource.collection(document["metadata"].get("namespace", ""))
        return await self.client.create(place, orjson.dumps(document), decode)

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

    async def patch(
        self, resource: Resource, name: str, change: Document, namespace: str = "default"
    ) -> None:
        """Merge a change into an object, or into its status if that is all that changes."""
        path = resource.object(name, namespace if resource.namespaced else "")
        path = path.subresource("status") if set(change) == {"status"} else path
        await self.client.patch(path, PatchType.MERGE, orjson.dumps(change), decode)

    async def get(
        self, resource: Resource, name: str, namespace: str = "default"
    ) -> Document | None:
        """Return an object, None if there is none."""
        path = resource.object(name, namespace if resource.namespaced else "")
        try:
            return await self.client.get(path, decode)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def names(self, resource: Resource = CONFIG_MAPS) -> list[str]:
        """Return the names of all objects of a resource, without those that every cluster has."""
        listed = (await self.client.list(resource, decode)).items
        names = [each["metadata"]["name"] for each in listed]
        return sorted(name for name in names if not name.startswith(("kube-", "default")))

    async def told(self) -> list[tuple[str, str, str]]:
        """Return reason, object and message of all Events."""
        listed = (await self.client.list(EVENTS, decode)).items
        return [(e["reason"], e["involvedObject"]["name"], e["message"]) for e in listed]


def without_version(document: Mapping[str, Any]) -> Document:
    """Return a document without what counts writes."""
    metadata = {k: v for k, v in document["metadata"].items() if k != "resourceVersion"}
    return {**document, "metadata": metadata}


__all__ = [
    "CLUSTER_ROLES",
    "CONFIG_MAPS",
    "EVENTS",
    "NAMESPACES",
    "NODES",
    "PODS",
    "Propagation",
    "Stage",
    "blocking",
    "decode",
    "owner",
    "running_pod",
    "thing",
    "without_version",
]
