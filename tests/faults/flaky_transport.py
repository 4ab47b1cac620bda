"""A transport to the API server that can fail: refused connections, resets, and dead streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, TypeVar

from extender.kube.rest.clock import Clock, within
from extender.kube.rest.transport import (
    IdleTimeoutError,
    Request,
    Response,
    Stream,
    Transport,
    TransportError,
)

T = TypeVar("T")


class FlakyTransport:
    """A transport that may be ``down``, and whose streams may break or stop delivering."""

    def __init__(self, inner: Transport, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock
        self._open: dict[_FlakyStream, None] = {}
        self.down = False
        self.requests = 0

    def reset(self) -> None:
        """Reset every stream."""
        for stream in tuple(self._open):
            stream.fail(TransportError("the connection was reset"))

    def stop_delivery(self) -> None:
        """Deliver nothing more on the open streams, without an error."""
        for stream in tuple(self._open):
            stream.dead = True

    async def request(self, request: Request) -> Response:
        self._send(request)
        return await self._in_time(request, self._inner.request(request))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        self._send(request)
        async with AsyncExitStack() as stack:
            opening = stack.enter_async_context(self._inner.stream(request))
            flaky = _FlakyStream(await self._in_time(request, opening), request, self._clock)
            self._open[flaky] = None
            try:
                yield flaky
            finally:
                self._open.pop(flaky, None)
                await flaky.end()

    async def close(self) -> None:
        await self._inner.close()

    def _send(self, request: Request) -> None:
        self.requests += 1
        if self.down:
            raise TransportError(f"{request}: connection refused")

    async def _in_time(self, request: Request, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await within(self._clock, request.idle_timeout, work)
        except TimeoutError:
            raise IdleTimeoutError(f"{request}: nothing received") from None


class _FlakyStream:
    """A stream whose lines a task reads, so that a reader that times out loses none."""

    def __init__(self, stream: Stream, request: Request, clock: Clock) -> None:
        self.status = stream.status
        self.headers = stream.headers
        self.dead = False
        self._stream = stream
        self._request = request
        self._clock = clock
        self._received: asyncio.Queue[bytes | TransportError | None] = asyncio.Queue()
        self._reading = asyncio.create_task(self._read_lines()) if stream.status == 200 else None

    def fail(self, error: TransportError) -> None:
        self._received.put_nowait(error)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            received = await within(self._clock, self._request.idle_timeout, self._received.get())
        except TimeoutError:
            raise IdleTimeoutError(f"{self._request}: nothing received") from None
        if isinstance(received, TransportError):
            raise received
        if received is None:
            raise StopAsyncIteration
        return received

    async def read(self) -> bytes:
        return await self._stream.read()

    async def end(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading

    async def _read_lines(self) -> None:
        try:
            async for line in self._stream:
                if not self.dead:
                    self._received.put_nowait(line)
        except TransportError as error:
            self._received.put_nowait(error)
            return
        if not self.dead:
            self._received.put_nowait(None)
