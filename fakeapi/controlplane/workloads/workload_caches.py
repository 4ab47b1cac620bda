"""Caches of the workloads of one kind and of the objects that they control, and writes to both.

An event of a controlled object enqueues its workload; an event of an orphan enqueues each workload
that selects it. A workload is not synced before the caches show the controller's own writes, so
that nothing is created twice.

Source: the event handlers of kubernetes/pkg/controller/deployment, job, statefulset and daemon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from extender.controllers.context import ControllerContext
from extender.controllers.replicaset.controller_ref_manager import ControllerRefManager, selects
from extender.controllers.replicaset.types import PodOwner
from extender.kube.controller_runtime.controller import RetryError
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.informers.consistency_store import ConsistencyStore
from extender.kube.informers.indexer import BY_NAMESPACE, IndexedObject, namespace_of
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import PatchType
from fakeapi.controlplane.workloads.types import ObjectKind

BY_CONTROLLER: Final = "workloads/controller"

W = TypeVar("W", bound=PodOwner)
C = TypeVar("C", bound=IndexedObject)


class WorkloadCaches(Generic[W, C]):
    """The workloads of one kind, and the objects of another kind that they control.

    An event of a controlled object enqueues its workload after ``delay`` seconds.
    """

    def __init__(
        self,
        context: ControllerContext,
        workload: ObjectKind[W],
        controlled: ObjectKind[C],
        delay: float = 0.0,
    ) -> None:
        self._delay = delay
        self._client = context.client
        self._workload = workload
        self._controlled = controlled
        self.workloads = context.informers.of(workload.resource, workload.decode)
        self.controlled = context.informers.of(controlled.resource, controlled.decode)
        self.workloads.objects.add_index(BY_NAMESPACE, namespace_of)
        self.controlled.objects.add_index(BY_CONTROLLER, _controller_or_namespace)
        self.writes = ConsistencyStore(
            {
                workload.resource: self.workloads.reflector,
                controlled.resource: self.controlled.reflector,
            }
        )
        self.queue: WorkQueue[str] = WorkQueue(context.clock)

    async def start(self) -> None:
        """Wait until the caches have synced, and enqueue workloads from then on."""
        await asyncio.gather(self.workloads.wait_synced(), self.controlled.wait_synced())
        self.workloads.objects.add_handler(_WorkloadEventHandler(self.queue))
        self.controlled.objects.add_handler(_ControlledObjectEventHandler(self))

    def current(self, key: str) -> W | None:
        """Return the workload to sync; None if it is gone, or its selector cannot be used.

        Raises RetryError if a cache lags behind a write.
        """
        if stale := self.writes.stale(key):
            raise RetryError(str(stale))
        found = self.workloads.objects.get(key)
        if found is None:
            self.writes.clear(key)
        return found if found is not None and found.selector is not None else None

    def controlled_by(self, workload: W) -> list[C]:
        """Return the objects that a workload controls."""
        meta = workload.metadata
        return [each for each in self.named(meta.key) if _controller_uid(each) == meta.uid]

    def named(self, key: str) -> list[C]:
        """Return the objects whose controller is a workload of this kind and key, if it exists."""
        return list(self.controlled.objects.by(BY_CONTROLLER, f"{self._workload.name}/{key}"))

    async def claim(self, workload: W) -> list[C]:
        """Return the objects that a workload owns, after adoptions and releases."""
        manager: ControllerRefManager[C] = ControllerRefManager(
            self._client,
            workload,
            self._workload.resource,
            self._controlled.name,
            partial(self._patch_owners, workload),
        )
        orphans = self.controlled.objects.by(BY_CONTROLLER, workload.metadata.namespace)
        return await manager.claim((*self.controlled_by(workload), *orphans))

    def enqueue_owners(self, item: IndexedObject) -> None:
        """Enqueue the controller of an object, or all workloads that select an orphan."""
        meta, controller = item.metadata, item.metadata.controller
        if controller is not None:
            if controller.kind == self._workload.name:
                self.queue.add_after(f"{meta.namespace}/{controller.name}", self._delay)
        else:
            self.enqueue_selecting(item)

    def enqueue_selecting(self, item: IndexedObject) -> None:
        """Enqueue the workloads that select an object, whatever controls it."""
        for workload in self.workloads.objects.by(BY_NAMESPACE, item.metadata.namespace):
            if selects(workload, item):
                self.queue.add_after(workload.metadata.key, self._delay)

    async def write_status(
        self,
        workload: W,
        status: Struct,
        required: Iterable[str] = (),
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Write a status; zero values are dropped except those of ``required`` fields."""
        fields = msgspec.to_builtins(status).items()
        kept = {name: value if value or name in required else None for name, value in fields}
        meta = workload.metadata
        metadata: dict[str, Any] = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        if annotations:
            metadata["annotations"] = annotations
        path = self._workload.resource.object(meta.name, meta.namespace).subresource("status")
        body = msgspec.json.encode({"metadata": metadata, "status": kept})
        written = await self._client.patch(path, PatchType.MERGE, body, self._workload.decode)
        version = written.metadata.resource_version
        self.writes.wrote(meta.key, meta.uid, self._workload.resource, version)

    async def create(self, workload: W, document: Mapping[str, Any]) -> C:
        """Create an object that a workload controls."""
        path = self._controlled.resource.collection(workload.metadata.namespace)
        body = msgspec.json.encode(document)
        return self._wrote(workload, await self._client.create(path, body, self._controlled.decode))

    async def patch(self, workload: W, item: C, patch: Mapping[str, Any]) -> C:
        """Merge a patch into an object that a workload controls, unless it has changed."""
        meta = {"resourceVersion": item.metadata.resource_version, **patch.get("metadata", {})}
        body = msgspec.json.encode({**patch, "metadata": meta})
        path = self._controlled.resource.object(item.metadata.name, item.metadata.namespace)
        patched = await self._client.patch(path, PatchType.MERGE, body, self._controlled.decode)
        return self._wrote(workload, patched)

    async def delete(self, item: C) -> None:
        """Delete an object that a workload controls, if it still exists."""
        meta = item.metadata
        try:
            path = self._controlled.resource.object(meta.name, meta.namespace)
            await self._client.delete(path, uid=meta.uid)
        except ApiError as error:
            if error.status != 404:
                raise

    def _wrote(self, workload: W, written: C) -> C:
        meta, version = workload.metadata, written.metadata.resource_version
        self.writes.wrote(meta.key, meta.uid, self._controlled.resource, version)
        return written

    async def _patch_owners(
        self, workload: W, namespace: str, name: str, patch: Mapping[str, Any]
    ) -> None:
        path, body = self._controlled.resource.object(name, namespace), msgspec.json.encode(patch)
        decode = self._controlled.decode
        self._wrote(workload, await self._client.patch(path, PatchType.STRATEGIC, body, decode))


class _WorkloadEventHandler:
    """Enqueues workloads."""

    def __init__(self, queue: WorkQueue[str]) -> None:
        self._queue = queue

    def added(self, item: IndexedObject) -> None:
        self._queue.add(item.metadata.key)

    def updated(self, _old: IndexedObject, new: IndexedObject) -> None:
        self._queue.add(new.metadata.key)

    def removed(self, item: IndexedObject) -> None:
        self._queue.add(item.metadata.key)


class _ControlledObjectEventHandler(Generic[W, C]):
    """Enqueues the workloads of controlled objects."""

    def __init__(self, caches: WorkloadCaches[W, C]) -> None:
        self._caches = caches

    def added(self, item: C) -> None:
        self._caches.enqueue_owners(item)

    def updated(self, old: C, new: C) -> None:
        if old.metadata.controller != new.metadata.controller:
            self._caches.enqueue_owners(old)
        self._caches.enqueue_owners(new)

    def removed(self, item: C) -> None:
        self._caches.enqueue_owners(item)


def _controller_or_namespace(item: IndexedObject) -> tuple[str]:
    """Return the index key of an object: its controller, or its namespace if it is an orphan."""
    namespace, controller = item.metadata.namespace, item.metadata.controller
    return (f"{controller.kind}/{namespace}/{controller.name}" if controller else namespace,)


def _controller_uid(item: IndexedObject) -> str:
    controller = item.metadata.controller
    return controller.uid if controller else ""
