"""The observations that the ReplicaSet controller's laws need, from both sides of the wire.

:class:`Ledger` stands in the controller's way to the server: it knows what has been asked for and
not yet shown itself in the controller's copy. :class:`Witness` stands at the server and misses
nothing: it knows how many pods there were after every single write.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, suppress
from typing import Final

import orjson

from extender.controllers.replicaset import ReplicaSetController
from extender.controllers.replicaset.types import OwnedPod, decode_pod
from extender.kube.controller_runtime.expectations import EXPIRY_SECONDS
from extender.kube.rest.clock import Clock
from extender.kube.rest.transport import Request, Response, Stream, Transport
from fakeapi import VirtualCluster
from fakeapi.apiserver.testing.object_history import find_kind

KEY: Final = "default/web"
_PODS: Final = "/api/v1/namespaces/default/pods"


class Ledger:
    """A transport that keeps account of creates and deletes.

    ``excess`` is how many more than the controller says that it expects have been outstanding at
    most. What was asked for more than five minutes ago counts no more, as the controller waits for
    nothing longer than that.
    """

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._part: ReplicaSetController | None = None
        self.excess = 0
        self._creating = 0
        self._seen: dict[str, None] = {}
        self._made: dict[str, float] = {}
        self._deleting: dict[str, float] = {}

    def follow(self, part: ReplicaSetController) -> None:
        """Learn what a new controller's copy of the pods shows, as soon as it does."""
        self._part = part
        for noted in (self._seen, self._made, self._deleting):
            noted.clear()  # it begins with what there is, and has asked for nothing yet
        part.caches.pods.objects.add_handler(self)

    def added(self, item: OwnedPod) -> None:
        """See a pod that was made."""
        self._seen[item.metadata.key] = None
        self._made.pop(item.metadata.key, None)

    def updated(self, _old: OwnedPod, new: OwnedPod) -> None:
        """Observe a pod that may be terminating."""
        if new.metadata.deleting:
            self.removed(new)

    def removed(self, item: OwnedPod) -> None:
        """See a pod that has gone."""
        self._deleting.pop(item.metadata.key, None)

    async def request(self, request: Request) -> Response:
        if request.method == "POST" and request.path == _PODS:
            return await self._create(request)
        if request.method == "DELETE" and request.path.startswith(f"{_PODS}/"):
            return await self._delete(request)
        return await self._transport.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._transport.stream(request)

    async def close(self) -> None:
        await self._transport.close()

    async def _create(self, request: Request) -> Response:
        self._creating += 1
        self._check()
        try:
            response = await self._transport.request(request)
        finally:
            self._creating -= 1
        if response.status == 201:
            with suppress(orjson.JSONDecodeError):  # half an answer: the controller cannot know
                key = f"default/{orjson.loads(response.body)['metadata']['name']}"
                if key not in self._seen:
                    self._made[key] = self._clock.monotonic()
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
        """Hold what is outstanding against what the controller says that it expects."""
        assert self._part is not None
        expected = self._part.expectations.counts(KEY) or (0, 0)
        oldest = self._clock.monotonic() - EXPIRY_SECONDS
        made, deleted = (
            sum(since >= oldest for since in asked.values())
            for asked in (self._made, self._deleting)
        )
        for number, allowed in zip((self._creating + made, deleted), expected, strict=True):
            self.excess = max(self.excess, number - max(0, allowed))


class Witness:
    """Sees every single write of pods; ``counts`` are the active pods before and after each."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._store = cluster.api.store
        self._kind = find_kind(cluster.api.kinds, "pods")
        self._seen = self._store.version
        present = [decode_pod(each.raw) for each in self._store.entries(self._kind)]
        self._active = {pod.uid: pod.active for pod in present}
        self.counts = [sum(self._active.values())]
        self.made = 0
        self._store.listen(self._kind, self._look)

    def _look(self) -> None:
        begin = max(self._seen, self._store.floor(self._kind))  # what was compacted was seen
        for event in self._store.since(self._kind, begin):
            pod = decode_pod(event.entry.raw)
            self.made += event.type == "ADDED"
            self._active[pod.uid] = pod.active and event.type != "DELETED"
            self._seen = event.version
        self.counts.append(sum(self._active.values()))
