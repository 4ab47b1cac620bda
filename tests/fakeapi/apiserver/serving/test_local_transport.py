"""The API without sockets, on a virtual clock."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Protocol

import orjson
import pytest

from extender.kube.rest import resources
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from extender.kube.rest.transport import Request, TransportError
from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.serving.local_transport import LocalTransport
from tests.fakeapi.api_requests import NODES


class Stepped(Clock, Protocol):
    async def advance(self, seconds: float) -> None: ...


@pytest.fixture
def transport(api: Api, clock: Stepped) -> LocalTransport:
    return LocalTransport(api, clock, Random(1))


async def create_node(transport: LocalTransport, name: str) -> None:
    body = orjson.dumps({"metadata": {"name": name}})
    answer = await transport.request(Request("POST", NODES, body=body))
    assert answer.status == 201


class NodeWatch:
    """Collect the events of a watch of nodes, in the background."""

    def __init__(self, transport: LocalTransport, **query: str) -> None:
        request = Request("GET", NODES, (("watch", "true"), *query.items()))
        self.frames: list[tuple[str, str]] = []
        self.task: asyncio.Task[None] = asyncio.create_task(self._follow(transport, request))

    async def _follow(self, transport: LocalTransport, request: Request) -> None:
        async with transport.stream(request) as stream:
            async for line in stream:
                frame = orjson.loads(line)
                metadata = frame["object"]["metadata"]
                self.frames.append((frame["type"], metadata.get("name", "")))


async def test_a_request_is_answered_as_by_a_server(transport: LocalTransport) -> None:
    await create_node(transport, "a-b")
    answer = await transport.request(Request("GET", f"{NODES}/a%2Db"))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert orjson.loads(answer.body)["metadata"]["name"] == "a-b"


async def test_a_body_is_given_byte_for_byte(transport: LocalTransport) -> None:
    answer = await transport.request(Request("GET", "/readyz"))
    assert answer.body == b"ok"


async def test_a_list_can_be_streamed(transport: LocalTransport) -> None:
    async with transport.stream(Request("GET", NODES)) as stream:
        kinds = [orjson.loads(line)["kind"] async for line in stream]
    assert kinds == ["NodeList"]


async def test_a_watch_can_be_awaited_whole(transport: LocalTransport, clock: Stepped) -> None:
    await create_node(transport, "a")
    query = (("watch", "1"), ("timeoutSeconds", "5"))
    asked = asyncio.create_task(transport.request(Request("GET", NODES, query)))
    await clock.advance(5)
    assert (await asked).body.count(b"\n") == 1


async def test_a_refused_stream_can_be_read_whole(transport: LocalTransport) -> None:
    request = Request("GET", NODES, (("watch", "1"), ("resourceVersion", "x")))
    async with transport.stream(request) as stream:
        assert stream.status == 400
        assert orjson.loads(await stream.read())["reason"] == "BadRequest"


async def test_events_arrive_without_time_passing(
    transport: LocalTransport, clock: Stepped
) -> None:
    watch = NodeWatch(transport)
    await create_node(transport, "a")
    await clock.advance(0)
    await create_node(transport, "b")
    await clock.advance(0)
    assert watch.frames == [("ADDED", "a"), ("ADDED", "b")]


async def test_bookmarks_come_each_minute_and_before_the_end(
    transport: LocalTransport, clock: Stepped
) -> None:
    from_now = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
    options = {"timeoutSeconds": "130", "allowWatchBookmarks": "true", **from_now}
    watch = NodeWatch(transport, **options)
    seen = []
    for seconds in (59, 1, 60, 7, 1, 1, 1):
        await clock.advance(seconds)
        seen.append((int(clock.monotonic()), len(watch.frames), watch.task.done()))
    assert seen == [
        (59, 0, False),
        (60, 1, False),
        (120, 2, False),
        (127, 2, False),
        (128, 3, False),
        (129, 3, False),
        (130, 3, True),
    ]


async def test_without_bookmarks_a_watch_without_events_sends_nothing(
    transport: LocalTransport, clock: Stepped
) -> None:
    watch = NodeWatch(transport, timeoutSeconds="300")
    await clock.advance(299)
    assert not watch.task.done()
    await clock.advance(1)
    assert (watch.frames, watch.task.done()) == ([], True)


async def test_without_a_timeout_the_server_picks_30_to_60_minutes(
    transport: LocalTransport, clock: Stepped
) -> None:
    watch = NodeWatch(transport)
    await clock.advance(1800)
    assert not watch.task.done()
    await clock.advance(1800)
    assert watch.task.done()


async def test_a_busy_watch_ends_in_time_too(transport: LocalTransport, clock: Stepped) -> None:
    watch = NodeWatch(transport, timeoutSeconds="10")
    for number in range(12):
        await create_node(transport, f"n{number}")
        await clock.advance(1)
    assert watch.task.done()
    assert len(watch.frames) == 10


async def test_closing_breaks_streams_and_refuses_requests(
    transport: LocalTransport, clock: Stepped
) -> None:
    watch = NodeWatch(transport)
    await clock.advance(0)
    await transport.close()
    with pytest.raises(TransportError):
        await watch.task
    with pytest.raises(TransportError):
        await transport.request(Request("GET", NODES))


async def test_a_stream_that_is_left_stops_listening(
    api: Api, transport: LocalTransport, clock: Stepped
) -> None:
    request = Request("GET", NODES, (("watch", "1"),))
    async with transport.stream(request) as stream:
        await create_node(transport, "a")
        assert b'"ADDED"' in await anext(aiter(stream))
    await clock.advance(0)
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
    assert api.store.version > 0


async def test_the_typed_client_works_over_it(transport: LocalTransport) -> None:
    for name in ("b", "a"):
        await create_node(transport, name)
    listing = await Client(transport).list(resources.NODES, lambda raw: orjson.loads(bytes(raw)))
    assert [node["metadata"]["name"] for node in listing.items] == ["a", "b"]
