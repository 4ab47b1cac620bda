"""The ResourceQuota controller: writes ``status.hard`` and recounts ``status.used``.

A quota is recounted when its limits change, when an object that it counts is removed or changes
what it charges, a second after one is added (admission has charged it, unless it was loaded), and
every five minutes. Only resources that some quota counts are watched, so without quotas nothing is.

A recount reads the quota, then lists the objects. A write that is charged in the meantime changes
the quota, so that the result of the recount is refused and the recount repeated:

    controller                     server
    GET quota, version 7
    LIST pods: 2
                                   POST pod: charged, the quota has version 9
    PUT status, version 7          409
    GET quota, version 9 ...

A resource that is not served keeps its usage, and is looked up again every 30 seconds.

Source: kubernetes/pkg/controller/resourcequota/{resource_quota_controller,
resource_quota_monitor}.go.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, field

from extender.controllers.context import ControllerContext
from extender.kube.controller_runtime.controller import Controller
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.decoders.object_meta import ObjectMeta, decode_partial
from extender.kube.informers.indexer import BY_NAMESPACE, Indexer
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Selection
from extender.kube.rest.discovery import discover_group
from extender.kube.rest.resources import Resource
from fakeapi.controlplane.controllers.types import decode_tolerantly

if TYPE_CHECKING:
    from fakeapi.quota.resource_list import ResourceQuantity

RESOURCE_QUOTAS: Final = Resource("", "v1", "resourcequotas", namespaced=True)
RESYNC_SECONDS: Final = 300.0
DISCOVERY_SECONDS: Final = 30.0

_ADDED_SECONDS: Final = 1.0
_MAX_DELAY_SECONDS: Final = 1.0
_VERBS: Final = {"create", "delete", "list", "watch"}

Object = Mapping[str, Any]


class _QuotaSpec(Struct):
    hard: dict[str, Any] = field(default_factory=dict)


class _Quota(Struct):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: _QuotaSpec = field(default_factory=_QuotaSpec)


class _CountedObject(Struct):
    """An object that quotas count, and all that a change of its charge would change."""

    metadata: ObjectMeta
    charge: Hashable = None


_decode_quota = decode_tolerantly(_Quota)


def _decode_object(raw: msgspec.Raw) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(raw)
    return document


@cache
def _decode_counted(counted: str) -> Callable[[msgspec.Raw], _CountedObject]:
    """Return the decoder of a counted resource: always the same one, as it identifies a cache."""
    from fakeapi.quota.evaluators import charge_fingerprint

    def decode(raw: msgspec.Raw) -> _CountedObject:
        metadata = decode_partial(raw).metadata
        metadata.labels = metadata.annotations = None
        return _CountedObject(metadata, charge_fingerprint(counted, lambda: _decode_object(raw)))

    return decode


class ResourceQuotaController:
    """The component ``resourcequota``."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._informers = context.informers
        self._quotas = context.informers.of(RESOURCE_QUOTAS, _decode_quota)
        self._quotas.objects.add_index(BY_NAMESPACE, lambda quota: (quota.metadata.namespace,))
        self._queue: WorkQueue[str] = WorkQueue(context.clock, _MAX_DELAY_SECONDS)
        self._watched: dict[str, tuple[Resource, _Monitor]] = {}
        self.controller = Controller("resourcequota", self._queue, self._sync)

    async def run(self) -> None:
        """Recount quotas until cancelled."""
        await self._quotas.wait_synced()
        self._quotas.objects.add_handler(_QuotaEventHandler(self._queue))
        try:
            await self.controller.run()
        finally:
            for counted in tuple(self._watched):
                self._stop_watching(counted)

    async def _sync(self, key: str) -> float | None:
        from fakeapi.quota.accounting import recount, recounted_status, tracked_resources

        self._stop_watching_unused()
        namespace, _, name = key.partition("/")
        path = RESOURCE_QUOTAS.object(name, namespace)
        quota = await self._client.find(path, _decode_object)
        if quota is None:
            return None
        again = RESYNC_SECONDS
        usage: dict[str, ResourceQuantity] = {}
        for counted in tracked_resources(quota):
            objects = await self._list(counted, namespace)
            if objects is None:
                again = DISCOVERY_SECONDS
            else:
                usage.update(recount(quota, counted, objects, self._clock.now_ns() // 10**9))
        status = recounted_status(quota, usage)
        if status is not None:
            body = msgspec.json.encode({**quota, "status": status})
            await self._client.update(path.subresource("status"), body, bytes)
        return again

    async def _list(self, counted: str, namespace: str) -> list[Object] | None:
        """Watch a resource, and return its objects of a namespace; None if it is not served."""
        if counted not in self._watched:
            resource = await self._find(counted)
            if resource is None:
                return None
            monitor = _Monitor(counted, self._quotas.objects, self._queue)
            self._watched[counted] = resource, monitor
            shared = self._informers.join(resource, _decode_counted(counted))
            shared.objects.add_handler(monitor)
        resource, _ = self._watched[counted]
        try:
            listed = await self._client.list(resource, _decode_object, Selection(namespace))
        except ApiError as error:
            if error.status != 404:
                raise
            self._stop_watching(counted)  # its definition was deleted
            return None
        return list(listed.items)

    async def _find(self, counted: str) -> Resource | None:
        plural, _, group = counted.partition(".")
        for served in await discover_group(self._client, group):
            resource = served.resource
            if resource.plural == plural and resource.namespaced and served.verbs >= _VERBS:
                return resource
        return None

    def _stop_watching_unused(self) -> None:
        for counted, (_, monitor) in tuple(self._watched.items()):
            if not any(map(monitor.is_counted_by, self._quotas.objects.values())):
                self._stop_watching(counted)

    def _stop_watching(self, counted: str) -> None:
        resource, monitor = self._watched.pop(counted)
        monitor.closed = True  # its objects were not deleted
        self._informers.leave(resource, _decode_counted(counted), handlers=(monitor,))


class _QuotaEventHandler:
    """Enqueues quotas that are new, or whose limits have changed."""

    def __init__(self, queue: WorkQueue[str]) -> None:
        self._queue = queue

    def added(self, item: _Quota) -> None:
        self._queue.add(item.metadata.key)

    def updated(self, old: _Quota, new: _Quota) -> None:
        if old.spec != new.spec:
            self._queue.add(new.metadata.key)

    def removed(self, item: _Quota) -> None:
        self._queue.add(item.metadata.key)


class _Monitor:
    """Enqueues the quotas that count an object when it comes, goes or changes its charge."""

    def __init__(self, counted: str, quotas: Indexer[_Quota], queue: WorkQueue[str]) -> None:
        from fakeapi.quota.evaluators import evaluator_of

        evaluator = evaluator_of(counted)
        assert evaluator is not None, counted
        self._affects = evaluator.affects
        self._quotas = quotas
        self._queue = queue
        self.closed = False

    def is_counted_by(self, quota: _Quota) -> bool:
        """Return whether a quota counts the objects of this resource."""
        return any(map(self._affects, quota.spec.hard))

    def added(self, item: _CountedObject) -> None:
        self._enqueue(item, _ADDED_SECONDS)

    def updated(self, old: _CountedObject, new: _CountedObject) -> None:
        if old.charge != new.charge:
            self._enqueue(new)

    def removed(self, item: _CountedObject) -> None:
        if not self.closed:
            self._enqueue(item)

    def _enqueue(self, item: _CountedObject, seconds: float = 0.0) -> None:
        for quota in self._quotas.by(BY_NAMESPACE, item.metadata.namespace):
            if self.is_counted_by(quota):
                self._queue.add_after(quota.metadata.key, seconds)
