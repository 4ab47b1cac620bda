"""An API without sockets on a clock that tests move, and a cluster with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

import orjson
import pytest

from fakeapi import FakeCluster
from fakeapi.api import Api, Request, Response, Watch
from fakeapi.harness import create_api

JSON = "application/json"
EPOCH_NS = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z


class SteppedClock:
    """A clock that stands still until a test advances it."""

    def __init__(self) -> None:
        self._now = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self._now

    def now_ns(self) -> int:
        return EPOCH_NS + int(self._now * 10**9)

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + seconds, future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move on, waking sleepers in the order of their time."""
        end = self._now + seconds
        await _settle()
        while due := sorted((s for s in self._sleepers if s[0] <= end), key=lambda s: s[0]):
            self._now = max(self._now, due[0][0])
            self._sleepers.remove(due[0])
            if not due[0][1].done():
                due[0][1].set_result(None)
            await _settle()
        self._now = end
        await _settle()


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def api(clock: SteppedClock) -> Api:
    return create_api(clock, Random(7), history=100)


@pytest.fixture
def ask(api: Api) -> Callable[..., tuple[int, Any]]:
    """Ask by method, path, body and query; gives the status and the decoded body."""

    def ask(
        method: str, path: str, body: Any = None, content_type: str = JSON, **query: str
    ) -> tuple[int, Any]:
        raw = b"" if body is None else orjson.dumps(body)
        request = Request(method, path, query, raw, content_type)
        answer = api.handle(request)
        assert isinstance(answer, Response)
        return answer.status, orjson.loads(answer.body)

    return ask


@pytest.fixture
def watch(api: Api) -> Callable[..., Callable[[], list[tuple[str, Any]]]]:
    """Open a watch by path and options; each call of the result gives what is new."""

    def watch(path: str, **query: str) -> Callable[[], list[tuple[str, Any]]]:
        opened = api.handle(Request("GET", path, {"watch": "true", **query}))
        assert isinstance(opened, Watch), opened

        def read() -> list[tuple[str, Any]]:
            lines: list[bytes] = []
            while not opened.ended and (more := opened.read(3)):
                lines += more
            frames = map(orjson.loads, lines)
            return [(frame["type"], frame["object"]) for frame in frames]

        return read

    return watch


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster() as running:
        yield running
