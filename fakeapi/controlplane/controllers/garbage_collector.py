"""The garbage collector: deletes objects whose owners are gone.

The graph (:mod:`fakeapi.controlplane.controllers.owner_graph`) selects the objects to check; the
result depends on the owners as the server returns them at that moment:

    references of the object            the object
    at least one solid owner            is kept, without its references to owners that are absent
                                        or wait for their dependents
    none solid; some owner waits for    is deleted in the foreground if it has dependents itself
    its dependents
    all owners absent                   is deleted, as its finalizers require, else in the
                                        background

An object that is deleted in the foreground waits until no dependent blocks it; then its finalizer
is removed. An object to be orphaned is first removed from its dependents' references. Cycles are
broken by making references non-blocking.

Discovery runs every 30 seconds, so that new kinds are found. Events are never collected. Processing
starts when all informers have synced, or after 30 seconds.

Source: kubernetes/pkg/controller/garbagecollector/garbagecollector.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.controllers.context import ControllerContext
from extender.kube.controller_runtime.controller import Controller, RetryError
from extender.kube.controller_runtime.event_recorder import ObjectReference
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.decoders.object_meta import (
    ObjectMeta,
    OwnerReference,
    PartialObject,
    decode_partial,
)
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Propagation
from extender.kube.rest.discovery import DiscoveryResult, ServedResource, discover
from extender.kube.rest.resources import ObjectPath, Resource
from extender.kube.rest.transport import TransportError
from fakeapi.controlplane.controllers.owner_graph import (
    FOREGROUND,
    ORPHAN,
    GraphNode,
    ObjectIdentity,
    OwnerGraph,
)
from fakeapi.controlplane.controllers.owner_references import OwnedObjects

SYNC_SECONDS: Final = 30.0

_EVENTS: Final = "events"
_COMPONENT: Final = "garbage-collector-controller"


@dataclass(frozen=True, slots=True)
class GarbageWorkItem:
    """A queue item: ``act`` is ``delete``, ``orphan`` or ``report`` (with the identities)."""

    act: str
    uid: str
    reported: tuple[ObjectIdentity, ObjectIdentity] | None = None


class GarbageCollector:
    """The component ``gc``."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._objects = OwnedObjects(context.client)
        self._informers = context.informers
        self._clock = context.clock
        self._recorder = context.events.recorder(_COMPONENT)
        self._queue: WorkQueue[GarbageWorkItem] = WorkQueue(context.clock)
        self._graph = OwnerGraph(_QueueWorklist(self._queue))
        self._discovered = DiscoveryResult(())
        self._watched: dict[Resource, _Monitor] = {}
        self.controller = Controller("gc", self._queue, self._sync)

    async def run(self) -> None:
        """Watch all resources and collect garbage until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                await self._rediscover()
                await self._wait_first_sync(group)
                group.create_task(self._keep_discovering())
                group.create_task(self.controller.run())
        finally:
            self._queue.close()
            for resource in tuple(self._watched):
                self._stop_watching(resource)

    async def _keep_discovering(self) -> None:
        while True:
            await self._clock.sleep(SYNC_SECONDS)
            await self._rediscover()

    async def _rediscover(self) -> None:
        try:
            self._discovered = await discover(self._client)
        except (ApiError, MalformedError, TransportError):
            return  # earlier results hold until the server answers again
        found = [r for r in self._discovered.deletable() if r.resource.plural != _EVENTS]
        served_by_resource = {served.resource: served for served in found}
        for obsolete in [
            r
            for r in self._watched
            if r not in served_by_resource and not self._has_failed_discovery(r)
        ]:
            self._stop_watching(obsolete)
        for resource, served in served_by_resource.items():
            if resource not in self._watched:
                monitor = self._watched[resource] = _Monitor(self._graph, served)
                self._informers.of(resource, _decode).objects.add_handler(monitor)

    def _stop_watching(self, resource: Resource) -> None:
        """Stop the monitor of a resource; its objects were not deleted, so nothing is enqueued."""
        self._watched.pop(resource).closed = True
        self._informers.drop(resource, _decode)

    def _has_failed_discovery(self, resource: Resource) -> bool:
        """Return whether a resource is only missing because discovery of its group failed."""
        version = f"{resource.group}/{resource.version}" if resource.group else resource.version
        return version in self._discovered.failures

    async def _wait_first_sync(self, group: asyncio.TaskGroup) -> None:
        seen = group.create_task(self._wait_all_synced())
        late = group.create_task(self._clock.sleep(SYNC_SECONDS))
        await asyncio.wait((seen, late), return_when=asyncio.FIRST_COMPLETED)
        seen.cancel()
        late.cancel()

    async def _wait_all_synced(self) -> None:
        for resource in tuple(self._watched):
            await self._informers.of(resource, _decode).wait_synced()

    async def _sync(self, work: GarbageWorkItem) -> None:
        if work.reported is not None:
            self._report(*work.reported)
            return
        node = self._graph.get(work.uid)
        if node is None:
            return  # deleted while queued
        if work.act == "orphan":
            await self._orphan(node)
        elif not await self._attempt_to_delete(node):
            self._graph.observe_absence(node.identity)
        elif node.virtual:
            raise RetryError(f"{node.identity} has not been seen yet")

    def _report(self, dependent: ObjectIdentity, owner: ObjectIdentity) -> None:
        fields = (dependent.api_version, dependent.kind, dependent.namespace, dependent.name)
        message = f'ownerRef {owner} does not exist in namespace "{dependent.namespace}"'
        about = ObjectReference(*fields, dependent.uid)
        self._recorder.warning(about, "OwnerRefInvalidNamespace", message)

    async def _attempt_to_delete(self, node: GraphNode) -> bool:
        """Delete a node's object if it is garbage; return False if it does not exist."""
        if node.deleting and not node.deleting_dependents:
            return True  # being deleted; its removal enqueues its dependents
        path = self._path(node.identity)
        latest = await self._objects.get(path)
        if latest is None or latest.uid != node.identity.uid:
            return False
        if node.deleting_dependents:
            await self._finish_foreground(node, path)
            return True
        if latest.owner_references:
            return await self._process_owners(node, path, latest)
        return True

    async def _finish_foreground(self, node: GraphNode, path: ObjectPath) -> None:
        blocking = node.blocking_dependents
        for dependent in blocking:
            if not dependent.deleting_dependents:
                self._queue.add(GarbageWorkItem("delete", dependent.identity.uid))
        if not blocking:
            await self._objects.remove_finalizer(path, FOREGROUND)

    async def _process_owners(self, node: GraphNode, path: ObjectPath, latest: ObjectMeta) -> bool:
        owners = await self._classify(node, latest.owner_references or ())
        if owners is None:
            return True
        if owners.solid:
            leaving = [owner.uid for owner in (*owners.dangling, *owners.waiting)]
            if leaving:
                await self._objects.remove_owners(path, node.identity.uid, leaving)
            return True
        if owners.waiting and node.dependents:
            if any(each.deleting_dependents for each in node.dependents.values()):
                await self._objects.unblock_owners(path, node.identity.uid, node.owners)
                latest = await self._objects.get(path) or latest
            return await self._objects.delete(path, latest, Propagation.FOREGROUND)
        return await self._objects.delete(path, latest, _propagation(latest))

    async def _classify(
        self, node: GraphNode, owners: Sequence[OwnerReference]
    ) -> _ClassifiedOwners | None:
        """Classify the owners; return None if a reference is invalid for every owner."""
        found = _ClassifiedOwners([], [], [])
        for owner in owners:
            served = self._served(owner.api_version, owner.kind)
            if served.resource.namespaced and not node.identity.namespace:
                return None
            meta = await self._owner(node, owner, served)
            if meta is None:
                found.dangling.append(owner)
            elif meta.deleting and FOREGROUND in (meta.finalizers or ()):
                found.waiting.append(owner)
            else:
                found.solid.append(owner)
        return found

    async def _owner(
        self, node: GraphNode, owner: OwnerReference, served: ServedResource
    ) -> ObjectMeta | None:
        place = node.identity.namespace if served.resource.namespaced else ""
        meta = await self._objects.get(served.resource.object(owner.name, place))
        return meta if meta is not None and meta.uid == owner.uid else None

    async def _orphan(self, node: GraphNode) -> None:
        for dependent in tuple(node.dependents.values()):
            path = self._path(dependent.identity)
            await self._objects.remove_owners(path, dependent.identity.uid, [node.identity.uid])
        await self._objects.remove_finalizer(self._path(node.identity), ORPHAN)

    def _path(self, identity: ObjectIdentity) -> ObjectPath:
        resource = self._served(identity.api_version, identity.kind).resource
        if resource.namespaced and not identity.namespace:
            raise RetryError(f"{identity}: a {identity.kind} has a namespace")
        return resource.object(identity.name, identity.namespace if resource.namespaced else "")

    def _served(self, api_version: str, kind: str) -> ServedResource:
        served = self._discovered.of_kind(api_version, kind)
        if served is None:  # the kind may be defined later
            raise RetryError(f"no kind {kind!r} in version {api_version!r} is served")
        return served


@dataclass(frozen=True, slots=True)
class _ClassifiedOwners:
    """Owner references by class: solid, absent, or waiting for dependents."""

    solid: list[OwnerReference]
    dangling: list[OwnerReference]
    waiting: list[OwnerReference]


def _decode(raw: msgspec.Raw) -> PartialObject:
    """Decode the owner references, without labels and annotations to save memory.

    The decoder is this module's own, so that the informers' caches are not shared.
    """
    item = decode_partial(raw)
    item.metadata.labels = item.metadata.annotations = None
    return item


class _QueueWorklist:
    """Implements the graph's worklist on a work queue."""

    def __init__(self, queue: WorkQueue[GarbageWorkItem]) -> None:
        self._queue = queue

    def attempt_to_delete(self, uid: str) -> None:
        self._queue.add(GarbageWorkItem("delete", uid))

    def attempt_to_delete_later(self, uid: str) -> None:
        self._queue.add_rate_limited(GarbageWorkItem("delete", uid))

    def attempt_to_orphan(self, uid: str) -> None:
        self._queue.add(GarbageWorkItem("orphan", uid))

    def report_invalid_namespace(self, dependent: ObjectIdentity, owner: ObjectIdentity) -> None:
        self._queue.add(GarbageWorkItem("report", dependent.uid, (dependent, owner)))


class _Monitor:
    """Passes the events of one resource to the graph."""

    def __init__(self, graph: OwnerGraph, served: ServedResource) -> None:
        self._graph = graph
        self._served = served
        self.closed = False

    def added(self, item: PartialObject) -> None:
        self._graph.observe(self._identity(item), item.metadata)

    def updated(self, old: PartialObject, new: PartialObject) -> None:
        self._graph.observe(self._identity(new), new.metadata, old.metadata)

    def removed(self, item: PartialObject) -> None:
        if not self.closed:
            self._graph.observe_deletion(self._identity(item))

    def _identity(self, item: PartialObject) -> ObjectIdentity:
        meta, of = item.metadata, self._served
        return ObjectIdentity(of.kind, of.api_version, meta.namespace, meta.name, meta.uid)


def _propagation(meta: ObjectMeta) -> Propagation:
    """Return the propagation policy that an object's finalizers require."""
    finalizers = meta.finalizers or ()
    if ORPHAN in finalizers:
        return Propagation.ORPHAN
    return Propagation.FOREGROUND if FOREGROUND in finalizers else Propagation.BACKGROUND
