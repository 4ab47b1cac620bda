"""The observations that the ReplicaSet controller's laws need, at the client and at the server.

:class:`OutstandingRequests` is the controller's transport: it knows the creations and deletions
that the controller's cache does not show yet. :class:`PodObserver` observes the store of the
server: it knows how many pods there were after every single write.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import orjson

from extender.controllers.replicaset import ReplicaSetController
from extender.controllers.replicaset.types import OwnedPod, decode_pod
from extender.kube.controller_runtime.expectations import EXPIRY_SECONDS
from extender.kube.rest.clock import Clock
from extender.kube.rest.transport import Request, Response, Transport
from fakeapi import VirtualCluster
from fakeapi.apiserver.testing.object_history import find_kind
from tests.transports import TransportWrapper

KEY: Final = "default/web"
_PODS: Final = "/api/v1/namespaces/default/pods"


class OutstandingRequests(TransportWrapper):
    """A transport that counts creations and deletions that the cache does not show yet.

    ``excess`` is the largest number by which they have exceeded the controller's expectations.
    Requests older than five minutes do not count: no expectation lasts longer than that.
    """

    def __init__(self, transport: Transport, clock: Clock) -> None:
        super().__init__(transport)
        self._clock = clock
        self._component: ReplicaSetController | None = None
        self.excess = 0
        self._creating = 0
        self._seen: dict[str, None] = {}
        self._created: dict[str, float] = {}
        self._deleting: dict[str, float] = {}

    def follow(self, component: ReplicaSetController) -> None:
        """Observe the pod cache of a new controller."""
        self._component = component
        for records in (self._seen, self._created, self._deleting):
            records.clear()  # the new controller has requested nothing yet
        component.caches.pods.objects.add_handler(self)

    def added(self, item: OwnedPod) -> None:
        """Observe a pod that was created."""
        self._seen[item.metadata.key] = None
        self._created.pop(item.metadata.key, None)

    def updated(self, _old: OwnedPod, new: OwnedPod) -> None:
        """Observe a pod that may be terminating."""
        if new.metadata.deleting:
            self.removed(new)

    def removed(self, item: OwnedPod) -> None:
        """Observe a pod that was removed."""
        self._deleting.pop(item.metadata.key, None)

    async def request(self, request: Request) -> Response:
        if request.method == "POST" and request.path == _PODS:
            return await self._create(request)
        if request.method == "DELETE" and request.path.startswith(f"{_PODS}/"):
            return await self._delete(request)
        return await super().request(request)

    async def _create(self, request: Request) -> Response:
        self._creating += 1
        self._check()
        try:
            response = await self._transport.request(request)
        finally:
            self._creating -= 1
        if response.status == 201:
            with suppress(orjson.JSONDecodeError):  # a truncated response
                key = f"default/{orjson.loads(response.body)['metadata']['name']}"
                if key not in self._seen:
                    self._created[key] = self._clock.monotonic()
        return response

    async def _delete(self, request: Request) -> Response:
        key = f"default/{request.path.rpartition('/')[2]}"
        self._deleting[key] = self._clock.monotonic()
        self._check()
        try:
            response = await self._transport.request(request)
        except BaseException:
            self._deleting.pop(key, None)
            raise
        if response.status != 200:
            self._deleting.pop(key, None)
        return response

    def _check(self) -> None:
        """Compare the outstanding requests with the controller's expectations."""
        assert self._component is not None
        expected = self._component.expectations.counts(KEY) or (0, 0)
        oldest = self._clock.monotonic() - EXPIRY_SECONDS
        created, deleted = (
            sum(since >= oldest for since in requests.values())
            for requests in (self._created, self._deleting)
        )
        for number, allowed in zip((self._creating + created, deleted), expected, strict=True):
            self.excess = max(self.excess, number - max(0, allowed))


class PodObserver:
    """Observes every write of pods; ``counts`` are the active pods before and after each."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._store = cluster.api.store
        self._kind = find_kind(cluster.api.kinds, "pods")
        self._seen = self._store.version
        present = [decode_pod(each.raw) for each in self._store.entries(self._kind)]
        self._active = {pod.uid: pod.active for pod in present}
        self.counts = [sum(self._active.values())]
        self.created = 0
        self._store.listen(self._kind, self._observe)

    def _observe(self) -> None:
        begin = max(self._seen, self._store.floor(self._kind))  # compacted events were observed
        for event in self._store.since(self._kind, begin):
            pod = decode_pod(event.entry.raw)
            self.created += event.type == "ADDED"
            self._active[pod.uid] = pod.active and event.type != "DELETED"
            self._seen = event.version
        self.counts.append(sum(self._active.values()))
