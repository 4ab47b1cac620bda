"""The objects of a cluster in this process, over a transport without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from extender.kube.rest import transport as kube
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.testing.object_requests import OBJECTS_PATH, object_request
from fakeapi.apiserver.wire.http_messages import Request
from fakeapi.simulation.world import World
from fakeapi.testing.object_calls import FIELD_MANAGER, ObjectCall, decode_answer
from fakeapi.testing.object_methods import ObjectMethods
from fakeapi.testing.object_waits import ObjectWait


class LocalObjects(
    ObjectMethods[Awaitable[Document], Awaitable[Sequence[Document]], Awaitable[None]]
):
    """Methods about the objects of a world, to be awaited."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def _perform(self, call: ObjectCall) -> Any:
        transport = self.world.internal_transport(FIELD_MANAGER)
        answer = await transport.request(self._request(call))
        return call.result(decode_answer(answer.status, answer.body))

    async def _perform_all(self, calls: Sequence[ObjectCall]) -> list[Document]:
        return [await self._perform(call) for call in calls]

    async def _wait(self, call: ObjectCall, wait: ObjectWait, seconds: float) -> Document:
        try:
            async with self._deadline(seconds):
                while not await self._watch(call, wait):
                    wait.restart()
        except TimeoutError:
            raise wait.error(seconds) from None
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

    def _request(self, call: ObjectCall) -> kube.Request:
        words = Request(call.method, OBJECTS_PATH, call.query)
        request = object_request(self.world.api.kinds, words)
        query = tuple(request.query.items())
        return kube.Request(
            call.method, quote(request.path), query, call.body or None, call.content_type
        )
