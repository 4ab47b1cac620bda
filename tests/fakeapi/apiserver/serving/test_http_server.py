"""The API behind a socket."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from random import Random
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson
import pytest
from structlog.testing import capture_logs

from extender.kube.rest.clock import SystemClock
from fakeapi import FakeCluster
from fakeapi.apiserver.endpoints import Api, Request, Response, Watch
from fakeapi.apiserver.serving.http_server import (
    MAX_BODY_BYTES,
    Server,
    ServerOptions,
    ServerTimeouts,
)
from fakeapi.apiserver.store.object_store import Store
from fakeapi.simulation.world import create_api
from tests.builders import manifest
from tests.fakeapi.api_requests import JSON, MAPS, MERGE, YAML, fixed_sources

HEADERS = {"Content-Type": JSON}
SHORT_TIMEOUTS = ServerTimeouts(idle=0.1, body=0.1)


@pytest.fixture
async def http(cluster: FakeCluster) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cluster.url) as session:
        yield session


@asynccontextmanager
async def serving(
    api: Api | None = None, timeouts: ServerTimeouts | None = None
) -> AsyncIterator[Server]:
    """Serve an API until the block ends."""
    options = ServerOptions() if timeouts is None else ServerOptions(timeouts)
    api = api or create_api(SystemClock(), Random(1))
    server = Server(api, SystemClock(), Random(1), options)
    await server.start()
    yield server
    await server.stop()


async def create(http: aiohttp.ClientSession, name: str, **labels: str) -> dict[str, Any]:
    body = orjson.dumps({"metadata": {"name": name, "labels": labels}})
    async with http.post(MAPS, data=body, headers=HEADERS) as answer:
        assert answer.status == 201
        return orjson.loads(await answer.read())  # type: ignore[no-any-return]


async def change(http: aiohttp.ClientSession, value: str) -> None:
    patch = {"data": {"big": value}}
    headers = {"Content-Type": MERGE}
    async with http.patch(f"{MAPS}/a", data=orjson.dumps(patch), headers=headers):
        pass


async def frames(answer: aiohttp.ClientResponse, count: int) -> list[tuple[str, str]]:
    found = []
    for _ in range(count):
        frame = orjson.loads(await answer.content.readline())
        found.append((frame["type"], frame["object"]["metadata"]["name"]))
    return found


async def test_a_watch_is_json_lines_as_they_happen(http: aiohttp.ClientSession) -> None:
    await create(http, "a")
    async with http.get(MAPS, params={"watch": "1"}) as answer:
        assert answer.content_type == "application/json"
        assert await frames(answer, 1) == [("ADDED", "a")]
        await create(http, "b")
        async with http.delete(f"{MAPS}/a"):
            pass
        assert await frames(answer, 2) == [("ADDED", "b"), ("DELETED", "a")]


NO_HTTP = {
    "a target that is no URL": b"GET http://user:secret@host:99999999/ HTTP/1.1\r\n\r\n",
    "a target without a port": b"CONNECT user:secret@host: HTTP/1.1\r\n\r\n",
    "a header that is none": b"GET / HTTP/1.1\r\nsecret secret\r\n\r\n",
    "chunks of no size": (
        b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"secret\r\n{}\r\n0\r\n\r\n"
    ),
}


@pytest.mark.parametrize("sent", NO_HTTP.values(), ids=NO_HTTP)
async def test_invalid_http_is_refused_in_one_line_that_repeats_nothing(sent: bytes) -> None:
    with capture_logs() as lines:
        async with serving() as server:
            host, port = server.url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(sent)
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            writer.close()
    assert head.startswith(b"HTTP/1.0 400 ")
    assert (body.count(b"\n"), body[-1:]) == (1, b"\n")
    [line] = lines
    assert (line["event"], line["exc_info"]) == ("refused", None)
    assert "secret" not in f"{head!r} {body!r} {line}"


async def test_a_body_of_more_than_3_mib_is_refused(http: aiohttp.ClientSession) -> None:
    async with http.post(
        MAPS, data=BytesIO(b" " * (MAX_BODY_BYTES + 1)), headers=HEADERS
    ) as answer:
        status = orjson.loads(await answer.read())
    assert (answer.status, status["reason"]) == (413, "RequestEntityTooLarge")
    assert status["message"] == "Request entity too large: limit is 3145728"


async def test_a_chunked_body_of_more_than_3_mib_is_refused(http: aiohttp.ClientSession) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield b" " * 1024**2

    async with http.post(MAPS, data=chunks(), headers=HEADERS) as answer:
        assert answer.status == 413


async def test_management_takes_larger_bodies(http: aiohttp.ClientSession) -> None:
    filler = "x" * (MAX_BODY_BYTES + 1)
    node = manifest("Node", "n", metadata={"annotations": {"a": filler}})
    async with http.post("/_fakeapi/load", data=BytesIO(orjson.dumps(node))) as answer:
        assert orjson.loads(await answer.read()) == {"loaded": 1}


async def test_requests_are_logged_with_their_user_agent(http: aiohttp.ClientSession) -> None:
    async with http.get(f"{MAPS}/nope?pretty=true", headers={"User-Agent": "tester/1"}):
        pass
    async with http.get("/_fakeapi/requests") as answer:
        log = orjson.loads(await answer.read())["requests"]
    assert log == [
        {
            "method": "GET",
            "path": f"{MAPS}/nope",
            "query": "pretty=true",
            "userAgent": "tester/1",
            "status": 404,
        }
    ]


async def test_a_disconnected_client_leaves_no_watcher(
    cluster: FakeCluster, http: aiohttp.ClientSession
) -> None:
    async with http.get(MAPS, params={"watch": "1"}) as answer:
        assert answer.status == 200
        answer.close()
    async with asyncio.timeout(5):
        while cluster.server.watchers:
            async with http.get("/livez"):
                pass


async def test_a_client_that_stalls_loses_only_its_own_watch() -> None:
    api = create_api(SystemClock(), Random(1), history=50)
    async with serving(api) as server, aiohttp.ClientSession(server.url) as http:
        await create(http, "a")
        stalled = _open_raw_watch(server.url)
        async with http.get(MAPS, params={"watch": "1"}) as reading:
            assert await frames(reading, 1) == [("ADDED", "a")]
            for number in range(400):
                await change(http, str(number) + "x" * 100_000)
                assert await frames(reading, 1) == [("MODIFIED", "a")]
        received = await asyncio.to_thread(_drain_until, stalled, b"\r\n0\r\n\r\n")
    assert b'"ERROR"' not in received
    assert len(received) < 400 * 100_000  # what it missed was not kept for it


async def test_a_client_that_stalls_for_too_long_is_cut_off() -> None:
    async with (
        serving(timeouts=ServerTimeouts(stall=0.01)) as server,
        aiohttp.ClientSession(server.url) as http,
    ):
        with _open_raw_watch(server.url):
            await create(http, "a")
            number = 0
            while server.watchers or not number:
                number += 1
                await change(http, str(number) + "x" * 1_000_000)


class FaultyApi(Api):
    """An API that raises an exception at one path."""

    def handle(self, request: Request) -> Response | Watch:
        if request.path == "/fault":
            raise ZeroDivisionError("a fault")
        return super().handle(request)


async def test_an_exception_is_a_500_and_the_server_goes_on() -> None:
    async with (
        serving(FaultyApi(Store(), fixed_sources())) as server,
        aiohttp.ClientSession(server.url) as http,
    ):
        async with http.get("/fault") as answer:
            status = orjson.loads(await answer.read())
        assert (answer.status, status["reason"]) == (500, "InternalError")
        assert "a fault" in status["message"]
        async with http.get("/readyz") as answer:
            assert answer.status == 200


def _open_raw_watch(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    raw = socket.create_connection((host, int(port)), timeout=10)
    raw.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    return raw


def _drain_until(raw: socket.socket, end: bytes) -> bytes:
    received = bytearray()
    with raw:
        while end not in received[-70_000:]:
            chunk = raw.recv(65_536)
            assert chunk, "the stream ended without the event"
            received += chunk
    return bytes(received)


async def test_stopping_ends_watches_cleanly() -> None:
    server = Server(create_api(SystemClock(), Random(1)), SystemClock(), Random(1))
    await server.start()
    async with (
        aiohttp.ClientSession(server.url) as http,
        http.get(MAPS, params={"watch": "1"}) as answer,
    ):
        stopping = asyncio.create_task(server.stop())
        assert await answer.read() == b""
        await stopping


async def test_a_taken_port_is_an_error(cluster: FakeCluster) -> None:
    port = int(cluster.url.rpartition(":")[2])
    with pytest.raises(OSError, match="address already in use"):
        async with FakeCluster(port=port):
            pass


async def test_a_head_that_does_not_arrive_costs_its_connection() -> None:
    async with serving(timeouts=SHORT_TIMEOUTS) as server:
        reader, writer = await _connect(server.url)
        writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        async with asyncio.timeout(20):
            assert await reader.read() == b""
        writer.close()


async def test_a_body_that_does_not_arrive_is_refused() -> None:
    async with serving(timeouts=SHORT_TIMEOUTS) as server:
        reader, writer = await _connect(server.url)
        head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{"
        writer.write(head.encode())
        async with asyncio.timeout(20):
            assert await reader.readline() == b"HTTP/1.1 504 Gateway Timeout\r\n"
        writer.close()


HUGE = {
    "a long selector": ("labelSelector", ",".join(f"k{n}=v{n}" for n in range(10_000)), 200),
    "a long set": ("labelSelector", f"k in ({','.join(f'v{n}' for n in range(20_000))})", 200),
    "deep brackets": ("labelSelector", "(" * 50_000, 400),
    "many negations": ("labelSelector", "!" * 50_000, 400),
    "a long field selector": ("fieldSelector", "metadata.name=a," * 5_000 + "metadata.name=b", 200),
    "a long token": ("continue", "A" * 100_000, 400),
    "a long number": ("resourceVersion", "9" * 100_000, 400),
    "many parameters": ("a=b&" * 50_000 + "x", "y", 200),
}


@pytest.mark.parametrize("name", HUGE)
async def test_a_huge_query_is_answered_in_time(cluster: FakeCluster, name: str) -> None:
    key, value, status = HUGE[name]
    target = f"{MAPS}?{key}={quote(value)}"
    reader, writer = await _connect(cluster.url)
    async with asyncio.timeout(10):
        writer.write(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
    writer.close()
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer[:300]


async def test_a_head_of_more_than_a_mib_is_refused(cluster: FakeCluster) -> None:
    reader, writer = await _connect(cluster.url)
    async with asyncio.timeout(10):
        writer.write(b"GET /livez?x=" + b"y" * 2 * 1024**2)
        answer = await reader.readline()
    writer.close()
    assert answer.endswith(b" 400 Bad Request\r\n")


OVERSIZED = {
    "nested lists": (JSON, b"[" * 1_000_000),
    "nested objects": (JSON, b'{"a":' * 300_000),
    "nested in a field": (JSON, b'{"metadata":{"name":"a"},"data":' + b"[" * 100_000),
    "a long number": (JSON, b'{"metadata":{"name":"a","generation":' + b"9" * 10**6 + b"}}"),
    "nested yaml": (YAML, b"{a: " * 500_000),
    "laughing yaml": (
        YAML,
        b"\n".join(
            [b"l0: &l0 [lol]"]
            + [
                b"l%d: &l%d [%s]" % (n, n, b",".join([b"*l%d" % (n - 1)] * 10))
                for n in range(1, 12)
            ]
        ),
    ),
    "wide yaml": (YAML, b"- 1\n" * 700_000),
}


@pytest.mark.parametrize("name", OVERSIZED)
async def test_an_oversized_body_is_refused_while_others_are_served(
    http: aiohttp.ClientSession, name: str
) -> None:
    content_type, body = OVERSIZED[name]
    headers = {"Content-Type": content_type}
    async with asyncio.timeout(20):
        async with http.post(MAPS, data=BytesIO(body), headers=headers) as answer:
            assert answer.status == 400, await answer.text()
        async with http.get("/livez") as answer:
            assert answer.status == 200


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "unknown"])
@pytest.mark.parametrize("body", ["{}", "garbage"])
async def test_a_compressed_body_is_refused_as_upstream_does(
    http: aiohttp.ClientSession, body: str, encoding: str
) -> None:
    packed = gzip.compress(b"{}" * 1024**2) if body == "{}" else b"garbage"
    headers = {**HEADERS, "Content-Encoding": encoding}
    async with http.post(MAPS, data=packed, headers=headers) as answer:
        status = orjson.loads(await answer.read())
    assert (answer.status, status["reason"]) == (400, "BadRequest")
    assert "\n" not in status["message"]


async def _connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))
