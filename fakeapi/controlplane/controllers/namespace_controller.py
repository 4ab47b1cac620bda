"""The namespace controller: deletes the content of terminating namespaces, then the namespaces.

    deleted ──► Terminating ──► content of all kinds deleted ──► finalizer removed ──► gone
                     ▲                     │ content remains
                     └── estimate/2 + 1 s ─┘

Discovery runs in every pass, so that custom resources are deleted, too; a kind that cannot be
listed keeps the namespace. Pods are deleted first, and other kinds only after the last pod is gone
(KEP-5080): a pod may still need its secrets and policies. The controller waits for terminating pods
as long as the longest grace period among them, and for objects with finalizers 15 seconds at a
time.

A namespace is first processed five seconds after its deletion, as upstream, so that every API
server has observed the deletion and no new objects are created behind the controller.

Source: kubernetes/pkg/controller/namespace/namespace_controller.go,
deletion/namespaced_resources_deleter.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from extender.controllers.context import ControllerContext
from extender.kube.controller_runtime.controller import Controller, RetryError
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.decoders.object_meta import (
    ObjectMeta,
    PartialObject,
    decode_partial,
    format_time,
    parse_time,
)
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client, PatchType, Propagation, Selection
from extender.kube.rest.discovery import DiscoveryResult, ServedResource, discover
from extender.kube.rest.resources import NAMESPACES, PODS, Resource
from fakeapi.controlplane.controllers.namespace_conditions import DeletionPass, conditions_after
from fakeapi.controlplane.controllers.types import Namespace, Pod, decode_namespace, decode_pod

GRACE_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 60.0
FINALIZER: Final = "kubernetes"

_FINALIZER_SECONDS: Final = 15
_DEFAULT_GRACE_SECONDS: Final = 30


class NamespaceController:
    """The component ``namespaces``."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._namespaces = context.informers.of(NAMESPACES, decode_namespace)
        self._queue: WorkQueue[str] = WorkQueue(context.clock, RETRY_SECONDS)
        self.controller = Controller("namespaces", self._queue, self._sync)

    async def run(self) -> None:
        """Delete terminating namespaces until cancelled."""
        self._namespaces.objects.add_handler(_TerminatingNamespaceEventHandler(self._queue))
        await self._namespaces.wait_synced()
        await self.controller.run()

    async def _sync(self, name: str) -> float | None:
        found = self._namespaces.objects.get(name)
        if found is None or not found.metadata.deleting:
            return None
        namespace = await self._read(name)
        if namespace is None or not namespace.metadata.deleting:
            return None
        if FINALIZER not in (namespace.spec.finalizers or ()):
            return None
        emptied = await NamespacedResourcesDeleter(self._client, name).delete_all(
            self._age(namespace)
        )
        namespace = await self._update_conditions(namespace, emptied)
        if emptied.failed:
            raise RetryError(f"namespace {name}: {emptied}")
        if emptied.estimate:
            return emptied.estimate // 2 + 1
        await self._finalize(namespace)
        return None

    def _age(self, namespace: Namespace) -> float:
        """Return the seconds since the namespace's deletion timestamp."""
        deleted_at = parse_time(namespace.metadata.deletion_timestamp)
        return (self._clock.now_ns() - deleted_at) / 10**9

    async def _read(self, name: str) -> Namespace | None:
        return await self._client.find(NAMESPACES.object(name), decode_namespace)

    async def _update_conditions(self, namespace: Namespace, emptied: DeletionPass) -> Namespace:
        now = format_time(self._clock.now_ns())
        conditions = conditions_after(emptied, namespace.status.conditions or (), now)
        if conditions is None:
            return namespace
        patch = {
            "metadata": {"resourceVersion": namespace.metadata.resource_version},
            "status": {"phase": "Terminating", "conditions": conditions},
        }
        path = NAMESPACES.object(namespace.metadata.name).subresource("status")
        body = msgspec.json.encode(patch)
        return await self._client.patch(path, PatchType.MERGE, body, decode_namespace)

    async def _finalize(self, namespace: Namespace) -> None:
        path = NAMESPACES.object(namespace.metadata.name)
        try:
            document = await self._client.get(path, msgspec.json.decode)
            rest = [each for each in document["spec"]["finalizers"] if each != FINALIZER]
            document["spec"] = {"finalizers": rest}
            body = msgspec.json.encode(document)
            await self._client.update(path.subresource("finalize"), body, bytes)
        except ApiError as error:
            if error.status != 404:
                raise


class _TerminatingNamespaceEventHandler:
    """Enqueues namespaces that are being deleted."""

    def __init__(self, queue: WorkQueue[str]) -> None:
        self._queue = queue

    def added(self, item: Namespace) -> None:
        if item.metadata.deleting:
            self._queue.add_after(item.metadata.name, GRACE_SECONDS)

    def updated(self, _old: Namespace, new: Namespace) -> None:
        self.added(new)

    def removed(self, item: Namespace) -> None:
        """Ignore removals; a deleted namespace needs no sync."""


class NamespacedResourcesDeleter:
    """Deletes the content of one namespace, in one pass."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._found = DeletionPass()

    async def delete_all(self, age: float) -> DeletionPass:
        """Delete all objects in the namespace, and return what remains.

        ``age`` is the time since the namespace's deletion timestamp, in seconds.
        """
        discovered = await self._discover()
        content = [r for r in discovered.resources if r.resource.namespaced and "delete" in r.verbs]
        for served in sorted(content, key=lambda each: each.resource != PODS):
            try:
                await self._delete_resource(served, age)
            except ApiError as error:
                self._found.undeleted.append(error.message)
            if served.resource == PODS and (self._found.remaining or self._found.undeleted):
                break  # pods may need the other objects
        return self._found

    async def _discover(self) -> DiscoveryResult:
        try:
            discovered = await discover(self._client)
        except ApiError as error:
            self._found.undiscovered = {"": error.message}
            return DiscoveryResult(())
        self._found.undiscovered = discovered.failures
        return discovered

    async def _delete_resource(self, served: ServedResource, age: float) -> None:
        resource = served.resource
        estimate = await self._estimate(age) if resource == PODS else 0
        await self._delete(served)
        left = await self._list(resource) if "list" in served.verbs else ()
        if not left:
            return
        self._found.estimate = max(self._found.estimate, estimate)
        self._found.remaining[resource] = len(left)
        for finalizer in (f for meta in left for f in meta.finalizers or ()):
            self._found.finalizers[finalizer] = self._found.finalizers.get(finalizer, 0) + 1
        if estimate:
            return
        if any(meta.finalizers for meta in left):
            self._found.estimate = max(self._found.estimate, _FINALIZER_SECONDS)
            return
        group, version, plural = resource.group, resource.version, resource.plural
        self._found.undeleted.append(
            f"unexpected items still remain in namespace: {self._namespace} for gvr: "
            f"{group}/{version}, Resource={plural}"
        )

    async def _delete(self, served: ServedResource) -> None:
        """Delete a collection, or its objects one by one if the kind lacks that verb."""
        resource = served.resource
        if "deletecollection" in served.verbs:
            collection = resource.collection(self._namespace)
            await self._client.delete_collection(collection, Propagation.BACKGROUND)
        elif "list" in served.verbs:
            for meta in await self._list(resource):
                path = resource.object(meta.name, self._namespace)
                try:
                    await self._client.delete(path, propagation=Propagation.BACKGROUND)
                except ApiError as error:
                    if error.status not in (404, 405):
                        raise

    async def _list(self, resource: Resource) -> Sequence[ObjectMeta]:
        selection = Selection(self._namespace)
        items: Sequence[PartialObject] = (
            await self._client.list(resource, decode_partial, selection)
        ).items
        return [item.metadata for item in items]

    async def _estimate(self, age: float) -> int:
        """Return the longest grace period of the pods in seconds; 0 if it has passed."""
        pods = (await self._client.list(PODS, decode_pod, Selection(self._namespace))).items
        longest = max(map(_grace_seconds, filter(_is_unfinished, pods)), default=0)
        return 0 if age >= longest else longest


def _is_unfinished(pod: Pod) -> bool:
    return pod.status.phase not in ("Succeeded", "Failed")


def _grace_seconds(pod: Pod) -> int:
    grace = pod.spec.termination_grace_period_seconds
    return _DEFAULT_GRACE_SECONDS if grace is None else grace
