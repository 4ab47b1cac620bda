"""An API without sockets on a clock that tests move, and a cluster with them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import orjson
import pytest

from fakeapi.apiserver.endpoints import Api, Request, Watch
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.simulation.world import create_api
from tests.fakeapi.api_requests import Ask, OpenWatch, send


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def api(clock: VirtualClock) -> Api:
    return create_api(clock, Random(7), history=100)


@pytest.fixture
def ask(api: Api) -> Ask:
    """Send a request; return the status and the body, decoded if it is JSON."""

    def ask(
        method: str, path: str, body: Any = None, content_type: str | None = None, **query: str
    ) -> tuple[int, Any]:
        answer = send(api, method, path, body, content_type, query=query)
        is_json = answer.body.startswith((b"{", b"["))
        return answer.status, orjson.loads(answer.body) if is_json else answer.body.decode()

    return ask


@pytest.fixture
def watch(api: Api) -> OpenWatch:
    """Open a watch by path and query; each call of the result returns the new events."""

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
