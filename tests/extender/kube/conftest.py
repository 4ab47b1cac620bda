"""A clock that jumps, and an API server with scripted replies, both without sockets."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
import pytest

from extender.kube.rest.transport import (
    IdleTimeoutError,
    LineTooLongError,
    Request,
    Response,
    Stream,
    TransportError,
)
from fakeapi.apiserver.serving.virtual_clock import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


class SteppedClock:
    """A clock that jumps: a sleep returns at once."""

    def __init__(self) -> None:
        self.elapsed = 0.0

    def monotonic(self) -> float:
        return self.elapsed

    def now_ns(self) -> int:
        return 1_700_000_000_000_000_000 + int(self.elapsed * 1e9)

    def advance(self, seconds: float) -> None:
        self.elapsed += seconds

    async def sleep(self, seconds: float) -> None:
        self.advance(max(seconds, 0.0))
        await asyncio.sleep(0)


@dataclass(frozen=True)
class Thing:
    """The fields of an object that the tests' informers keep."""

    name: str
    version: str


class _Meta(msgspec.Struct, rename="camel"):
    name: str = "?"
    resource_version: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta


def thing(raw: msgspec.Raw) -> Thing:
    meta = msgspec.json.decode(raw, type=_Object).metadata
    return Thing(meta.name, meta.resource_version)


def an_object(name: str, version: int) -> bytes:
    return b'{"metadata":{"name":"%s","resourceVersion":"%d"}}' % (name.encode(), version)


def a_list(version: int, *objects: bytes, token: str = "") -> Response:
    meta = b'{"resourceVersion":"%d","continue":"%s"}' % (version, token.encode())
    return Response(200, b'{"metadata":%s,"items":[%s]}' % (meta, b",".join(objects)))


def a_status(code: int, reason: str, *, cause: str = "", retry_after: int = 0) -> bytes:
    details = {"causes": [{"reason": cause}], "retryAfterSeconds": retry_after}
    status = {"kind": "Status", "code": code, "reason": reason, "message": f"it is {reason}"}
    return msgspec.json.encode({**status, "details": details})


def a_refusal(code: int, reason: str, *, cause: str = "", retry_after: int = 0) -> Response:
    return Response(code, a_status(code, reason, cause=cause, retry_after=retry_after))


def added(name: str, version: int) -> bytes:
    return _frame("ADDED", an_object(name, version))


def modified(name: str, version: int) -> bytes:
    return _frame("MODIFIED", an_object(name, version))


def deleted(name: str, version: int) -> bytes:
    return _frame("DELETED", an_object(name, version))


def bookmark(version: int) -> bytes:
    return _frame("BOOKMARK", b'{"metadata":{"resourceVersion":"%d"}}' % version)


def initial_end(version: int) -> bytes:
    marks = b'{"k8s.io/initial-events-end":"true"}'
    body = b'{"metadata":{"resourceVersion":"%d","annotations":%s}}' % (version, marks)
    return _frame("BOOKMARK", body)


def an_error(code: int, reason: str, *, cause: str = "") -> bytes:
    return _frame("ERROR", a_status(code, reason, cause=cause))


def _frame(kind: str, body: bytes) -> bytes:
    return b'{"type":"%s","object":%s}' % (kind.encode(), body)


@dataclass(frozen=True)
class Stay:
    """The stream stays open this long without an event."""

    seconds: float


@dataclass(frozen=True)
class Silence:
    """No byte arrives until the reader times out."""


@dataclass(frozen=True)
class Lost:
    """The connection breaks."""


@dataclass(frozen=True)
class TooLong:
    """A line exceeds the limit."""


Step = bytes | Stay | Silence | Lost | TooLong


@dataclass(frozen=True)
class Watch:
    """A watch that returns these lines, then ends."""

    steps: tuple[Step, ...]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def a_watch(*steps: Step) -> Watch:
    return Watch(steps)


Reply = Response | Watch | Lost


@dataclass(frozen=True)
class TimedRequest:
    """A request and its time, in seconds of the test's clock."""

    at: float
    request: Request

    @property
    def query(self) -> dict[str, str]:
        return dict(self.request.query)


class ScriptedApi:
    """A transport that answers each request with the next reply of its script, and then never."""

    def __init__(self, clock: SteppedClock, *script: Reply) -> None:
        self._clock = clock
        self._script = deque(script)
        self.requests: list[TimedRequest] = []
        self.played = asyncio.Event()

    async def request(self, request: Request) -> Response:
        reply = await self._next(request)
        assert isinstance(reply, Response), f"the script has no response to {request}, but {reply}"
        return reply

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        reply = await self._next(request)
        watch = Watch((reply.body,), reply.status) if isinstance(reply, Response) else reply
        yield _ScriptedStream(watch, request, self._clock)

    async def close(self) -> None:
        self.played.set()

    async def _next(self, request: Request) -> Response | Watch:
        self.requests.append(TimedRequest(self._clock.elapsed, request))
        if not self._script:
            self.played.set()
            await asyncio.Event().wait()
        reply = self._script.popleft()
        if isinstance(reply, Lost):
            raise TransportError("connection refused")
        return reply


class _ScriptedStream:
    def __init__(self, watch: Watch, request: Request, clock: SteppedClock) -> None:
        self.status = watch.status
        self.headers = watch.headers
        self._steps = deque(watch.steps)
        self._request = request
        self._clock = clock

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while self._steps:
            step = self._steps.popleft()
            if isinstance(step, bytes):
                return step
            await self._wait(step)
        raise StopAsyncIteration

    async def read(self) -> bytes:
        return b"".join(step for step in self._steps if isinstance(step, bytes))

    async def _wait(self, step: Stay | Silence | Lost | TooLong) -> None:
        if isinstance(step, Stay):
            await self._clock.sleep(step.seconds)
            return
        if isinstance(step, TooLong):
            raise LineTooLongError("a line too long to hold")
        if isinstance(step, Silence):
            await self._clock.sleep(self._request.idle_timeout)
            raise IdleTimeoutError("nothing was received")
        raise TransportError("connection lost")
