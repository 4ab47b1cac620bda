"""The objects of a cluster in this process: read, apply, delete, and wait for a state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from extender.kube.rest import transport as kube
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.testing.object_requests import OBJECTS_PATH, object_request
from fakeapi.apiserver.wire.http_messages import Request
from fakeapi.simulation.world import World
from fakeapi.testing.object_calls import (
    FIELD_MANAGER,
    ObjectCall,
    apply_call,
    decode_answer,
    delete_call,
    get_call,
    items_of,
    list_call,
    watch_call,
)
from fakeapi.testing.object_sources import Model
from fakeapi.testing.object_waits import Goal, ObjectWait


class ObjectMethods:
    """Methods about the objects of a world; no fault affects them, and no log shows them."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def get(self, kind: str, name: str, namespace: str = "") -> Document:
        """Return an object of the kind (``pods``, ``po``, ``Pod``, ``deployments.apps``).

        Without ``namespace`` it is in ``default``. Raises StatusError (404).
        """
        return await self._send(get_call(kind, name, namespace))

    async def list(
        self, kind: str, namespace: str = "", label_selector: str = ""
    ) -> Sequence[Document]:
        """Return the objects of a kind, of one namespace or of all; raises StatusError."""
        return items_of(await self._send(list_call(kind, namespace, label_selector)))

    async def apply(self, thing: Mapping[str, Any] | Model) -> Document:
        """Create or change an object by server-side apply, and return it; raises StatusError."""
        return await self._send(apply_call(thing))

    async def delete(
        self, kind: str, name: str, namespace: str = "", grace_period_seconds: int | None = None
    ) -> None:
        """Delete an object; raises StatusError (404)."""
        await self._send(delete_call(kind, name, namespace, grace_period_seconds))

    async def wait_for(
        self,
        kind: str,
        name: str,
        goal: Goal,
        namespace: str = "",
        timeout: float = 10.0,  # noqa: ASYNC109 - the error after it has the object's state
    ) -> Document:
        """Watch an object until it reaches a state, and return it.

        ``goal`` is a condition (``Ready``, ``condition=Ready=False``, ``create``, ``delete``,
        ``jsonpath={.status.phase}=Running``) or a function of the object. ``timeout`` is in
        seconds. Raises WaitTimeoutError with the object's last state, StatusError, ValueError.
        """
        wait = ObjectWait(goal, f"{kind} {name}")
        try:
            async with self._deadline(timeout):
                while not await self._watch(watch_call(kind, name, namespace), wait):
                    wait.restart()
        except TimeoutError:
            raise wait.error(timeout) from None
        return wait.last

    @asynccontextmanager
    async def _deadline(self, seconds: float) -> AsyncIterator[None]:
        """Raise TimeoutError in the block after ``seconds``."""
        async with asyncio.timeout(seconds):
            yield

    async def _watch(self, call: ObjectCall, wait: ObjectWait) -> bool:
        """Return whether the object reached the state before the watch ended."""
        transport = self.world.internal_transport(FIELD_MANAGER)
        async with transport.stream(self._request(call)) as stream:
            if stream.status >= 400:
                decode_answer(stream.status, await stream.read())
            async for line in stream:
                if wait.feed(line):
                    return True
        return False

    async def _send(self, call: ObjectCall) -> Document:
        transport = self.world.internal_transport(FIELD_MANAGER)
        answer = await transport.request(self._request(call))
        document: Document = decode_answer(answer.status, answer.body)
        return document

    def _request(self, call: ObjectCall) -> kube.Request:
        words = Request(call.method, OBJECTS_PATH, call.query)
        request = object_request(self.world.api.kinds, words)
        query = tuple(request.query.items())
        return kube.Request(
            call.method, quote(request.path), query, call.body or None, call.content_type
        )
