"""Transport to the API without sockets, and the timing of watches.

:class:`LocalTransport` connects a client to an API in the same process, without a port or a thread,
so that everything can run on a virtual clock. It implements
:class:`extender.kube.rest.transport.Transport`.

:class:`WatchPump` is the only code that applies a clock to a watch, with and without sockets:

- lines are sent as soon as they can be read, at most ``MAX_BATCH_LINES`` at once, and only after
  the previous ones were taken: a client that stops reading stops only its own watch;
- a client that requests bookmarks receives one each minute, and one two seconds before the end;
- the watch ends after its timeout; without one the server chooses 30 to 60 minutes.

With :attr:`WatchTiming.ENDLESS` a watch has neither bookmarks nor an end, so that months of virtual
time cost nothing but what happens in them.

Source: k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go, endpoints/handlers/get.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from enum import Enum, auto
from math import inf
from random import Random
from typing import Final
from urllib.parse import unquote, urlencode

from extender.kube.rest import transport as kube
from extender.kube.rest.clock import Clock
from extender.kube.rest.http_transport import user_agent
from fakeapi.apiserver.endpoints import Api, Request, Response, Watch, parse_query
from fakeapi.apiserver.serving.fault_delivery import AnyWatch, FaultDelivery, FaultyWatch
from fakeapi.apiserver.testing.fault_injection import FaultInjector
from fakeapi.apiserver.testing.request_log import RequestRecord
from fakeapi.apiserver.webhooks.client import CallDispatcher, post_once
from fakeapi.apiserver.wire.http_messages import JSON

MAX_BATCH_LINES: Final = 100
BOOKMARK_SECONDS: Final = 60.0
LAST_BOOKMARK_SECONDS: Final = 2.0
MIN_WATCH_TIMEOUT_SECONDS: Final = 1800.0

_NO_QUERY: Final[Mapping[str, str]] = {}


class WatchTiming(Enum):
    """How long watches last: as a server's, or until they are closed."""

    SERVER = auto()
    ENDLESS = auto()


def watch_timeout(watch: AnyWatch, rng: Random) -> float:
    """Return the timeout of a watch, in seconds."""
    return watch.timeout_seconds or MIN_WATCH_TIMEOUT_SECONDS * (1 + rng.random())


class WatchPump:
    """Reads the lines of a watch as they become available, until it ends or is stopped."""

    def __init__(
        self, watch: AnyWatch, clock: Clock, timeout_seconds: float, calls: CallDispatcher
    ) -> None:
        self._watch = watch
        self._errands = calls
        self._clock = clock
        self._timeout = timeout_seconds
        self._woken = asyncio.Event()
        self._stopped = False

    def stop(self) -> None:
        """End the pump at its next iteration."""
        self._stopped = True
        self._woken.set()

    async def batches(self) -> AsyncGenerator[Sequence[bytes], None]:
        """Yield lines (each with its newline) in batches that are never empty."""
        deadline = self._clock.monotonic() + self._timeout
        cancel = self._watch.listen(self._woken.set)
        alarm = WakeTimer(self._clock, self._woken)
        try:
            due = self._next_due(deadline)
            while not self._stopped and self._clock.monotonic() < deadline:
                self._woken.clear()
                lines = await self._errands.run(self._read)
                if not lines and self._clock.monotonic() >= due:
                    due = self._next_due(deadline)
                    lines = self._watch.due_bookmark()
                if lines:
                    yield lines
                if self._watch.ended:
                    return
                if not lines:
                    if due < inf:
                        alarm.set(due)
                    await self._woken.wait()
        finally:
            cancel()
            alarm.cancel()

    def _read(self) -> Sequence[bytes]:
        return self._watch.read(MAX_BATCH_LINES)

    def _next_due(self, deadline: float) -> float:
        """Return when to wake without an event: for a bookmark, or at the end."""
        now = self._clock.monotonic()
        if not self._watch.bookmarks or deadline == inf:
            return deadline
        last = deadline - LAST_BOOKMARK_SECONDS
        return min(now + BOOKMARK_SECONDS, last if last > now else deadline)


class WakeTimer:
    """Sets an asyncio event when a clock reaches a time, with at most one task."""

    def __init__(self, clock: Clock, woken: asyncio.Event) -> None:
        self._clock = clock
        self._woken = woken
        self._task: asyncio.Task[None] | None = None

    def set(self, due: float) -> None:
        """Set the event at ``due``, in seconds of the monotonic clock, unless a task is pending."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._ring(due))

    def cancel(self) -> None:
        """Cancel the task."""
        if self._task is not None:
            self._task.cancel()

    async def _ring(self, due: float) -> None:
        await self._clock.sleep(due - self._clock.monotonic())
        self._woken.set()


class LocalTransport:
    """A transport to an Api in this process; ``rng`` chooses watch timeouts, unless endless.

    ``record`` is called with each request. ``faults`` injects faults into requests. ``agent`` is
    the User-Agent of requests (default: our own).
    """

    def __init__(
        self,
        api: Api,
        clock: Clock,
        rng: Random,
        record: Callable[[RequestRecord], None] = lambda _record: None,
        faults: FaultInjector | None = None,
        agent: str = "",
        watch_timing: WatchTiming = WatchTiming.SERVER,
    ) -> None:
        self._watch_timing = watch_timing
        self._fault_delivery = FaultDelivery(faults, clock)
        self._agent = agent or user_agent()
        self._record = record
        self._api = api
        self._calls = CallDispatcher(api.pending_calls, post_once, clock)
        self._clock = clock
        self._rng = rng
        self._pumps: set[WatchPump] = set()
        self._closed = False

    async def request(self, request: kube.Request) -> kube.Response:
        """Send a request and return the whole response (a watch's at its end).

        Raises TransportError.
        """
        answer = await self._answer(request)
        if isinstance(answer, Response):
            return kube.Response(answer.status, answer.joined.body, _headers(answer))
        body = b"".join([line + b"\n" async for line in self._watch_lines(answer, request)])
        return kube.Response(200, body, _content_type(JSON))

    @asynccontextmanager
    async def stream(self, request: kube.Request) -> AsyncIterator[LocalStream]:
        """Send a request and stream the response; raises TransportError once closed."""
        answer = await self._answer(request)
        if isinstance(answer, Response):
            body = answer.joined.body
            yield LocalStream(answer.status, _headers(answer), body, _lines(body))
            return
        async with aclosing(self._watch_lines(answer, request)) as lines:
            yield LocalStream(200, _content_type(JSON), b"", lines)

    async def close(self) -> None:
        """Close; every open stream ends with a TransportError."""
        self._closed = True
        for feed in tuple(self._pumps):
            feed.stop()

    async def _answer(self, request: kube.Request) -> Response | AnyWatch:
        if self._closed:
            raise kube.TransportError(f"{request}: this transport is closed")
        await asyncio.sleep(0)  # as with any other transport, other tasks run first
        outcome = await self._fault_delivery.deliver(_translate(request, self._agent), self._handle)
        query = urlencode(request.query) if request.query else ""
        request_fields = request.method, request.path, query, self._agent
        sent = (request.content_type, request.body) if request.body else ("", b"")
        self._record(RequestRecord(*request_fields, outcome.status, outcome.fault, *sent))
        if outcome.response is None or outcome.breaks:
            raise kube.TransportError(f"{request}: the connection was reset")
        return outcome.response

    async def _handle(self, request: Request) -> Response | Watch:
        return await self._calls.run(lambda: self._api.handle(request))

    async def _watch_lines(
        self, watch: AnyWatch, request: kube.Request
    ) -> AsyncGenerator[bytes, None]:
        is_endless = self._watch_timing is WatchTiming.ENDLESS
        timeout = inf if is_endless else watch_timeout(watch, self._rng)
        feed = WatchPump(watch, self._clock, timeout, self._calls)
        self._pumps.add(feed)
        try:
            async with aclosing(feed.batches()) as batches:
                async for lines in batches:
                    for line in lines:
                        if line.endswith(b"\n"):  # a line that was cut off is dropped
                            yield line.removesuffix(b"\n")
        finally:
            self._pumps.discard(feed)
        if self._closed:
            raise kube.TransportError(f"{request}: the transport was closed")
        if isinstance(watch, FaultyWatch) and watch.breaks:
            raise kube.TransportError(f"{request}: the connection was reset")


class LocalStream:
    """A streamed response: the lines of a watch, or a complete body."""

    def __init__(
        self, status: int, headers: Mapping[str, str], body: bytes, lines: AsyncIterator[bytes]
    ) -> None:
        self.status = status
        self.headers = headers
        self._body = body
        self._lines = lines

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over complete lines without their newline."""
        return self._lines

    async def read(self) -> bytes:
        """Return the body, truncated to MAX_ERROR_BODY_BYTES."""
        return self._body[: kube.MAX_ERROR_BODY_BYTES]


async def _lines(body: bytes) -> AsyncIterator[bytes]:
    for line in body.removesuffix(b"\n").split(b"\n"):
        yield line


def _headers(answer: Response) -> Mapping[str, str]:
    headers = _content_type(answer.content_type)
    if not answer.headers:
        return headers
    return {**headers, **{name.lower(): value for name, value in answer.headers.items()}}


def _content_type(value: str) -> Mapping[str, str]:
    return {"content-type": value}


def _translate(request: kube.Request, agent: str) -> Request:
    return Request(
        method=request.method,
        path=unquote(request.path),
        query=parse_query(urlencode(request.query)) if request.query else _NO_QUERY,
        body=request.body or b"",
        content_type=request.content_type if request.body else "",
        accept=JSON,
        user_agent=agent,
    )
