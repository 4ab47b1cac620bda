"""Watches over WebSockets, as fabric8's informers open them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

import orjson
import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType

from fakeapi import FakeCluster
from fakeapi.apiserver.wire.protobuf import read_protobuf
from fakeapi.testing.faults import Fault, fault
from tests.builders import manifest
from tests.fakeapi.api_requests import JSON, MAPS, PARTIAL, PROTOBUF, TABLE
from tests.fakeapi.protobuf_frames import read_event, read_frames

HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Origin": "http://127.0.0.1",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture
async def http(cluster: FakeCluster) -> AsyncIterator[ClientSession]:
    async with ClientSession(cluster.url, headers={"Origin": "http://127.0.0.1"}) as session:
        yield session


async def create(http: ClientSession, name: str) -> None:
    body = orjson.dumps(manifest("ConfigMap", name))
    async with http.post(MAPS, data=body, headers={"Content-Type": JSON}) as answer:
        assert answer.status == 201


async def event(socket: ClientWebSocketResponse) -> tuple[str, Any]:
    """Receive the next event."""
    frame = orjson.loads(await socket.receive_str(timeout=10))
    return frame["type"], frame["object"]


async def names(socket: ClientWebSocketResponse) -> list[str]:
    """Return the names in all events until the server ends the watch."""
    return [orjson.loads(each.data)["object"]["metadata"]["name"] async for each in socket]


async def test_each_event_is_a_text_message(http: ClientSession) -> None:
    await create(http, "a")
    async with http.ws_connect(MAPS, params={"watch": "true"}) as socket:
        events = [await event(socket)]
        await create(http, "b")
        events.append(await event(socket))
        async with http.delete(f"{MAPS}/a"):
            pass
        events.append(await event(socket))
    assert [(type_, found["metadata"]["name"]) for type_, found in events] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("DELETED", "a"),
    ]


@pytest.mark.parametrize(
    ("accept", "kind"), [(JSON, "ConfigMap"), (TABLE, "Table"), (PARTIAL, "PartialObjectMetadata")]
)
async def test_objects_have_the_requested_representation(
    http: ClientSession, accept: str, kind: str
) -> None:
    await create(http, "a")
    headers = {"Accept": accept}
    async with http.ws_connect(MAPS, params={"watch": "true"}, headers=headers) as socket:
        assert (await event(socket))[1]["kind"] == kind


async def test_events_in_protobuf_are_binary_messages(http: ClientSession) -> None:
    await create(http, "a")
    headers = {"Accept": PROTOBUF}
    async with http.ws_connect(MAPS, params={"watch": "true"}, headers=headers) as socket:
        type_, found = read_event(await socket.receive_bytes(timeout=10))
    assert (type_, found["kind"], found["metadata"]["name"]) == ("ADDED", "ConfigMap", "a")


async def test_initial_events_end_with_a_bookmark(http: ClientSession) -> None:
    await create(http, "a")
    query = {"allowWatchBookmarks": "true", "sendInitialEvents": "true"}
    query |= {"watch": "true", "resourceVersionMatch": "NotOlderThan"}
    async with http.ws_connect(MAPS, params=query) as socket:
        assert [(await event(socket))[0] for _ in range(2)] == ["ADDED", "BOOKMARK"]


async def test_the_watch_ends_normally_after_its_timeout(http: ClientSession) -> None:
    query = {"watch": "true", "timeoutSeconds": "1"}
    async with http.ws_connect(MAPS, params=query) as socket:
        assert (await names(socket), socket.close_code) == ([], 1000)


@pytest.mark.parametrize(
    ("query", "code"), [({"resourceVersion": "x"}, 400), ({"labelSelector": "a in"}, 400)]
)
async def test_an_invalid_request_is_answered_without_an_upgrade(
    http: ClientSession, query: dict[str, str], code: int
) -> None:
    async with http.get(MAPS, params={"watch": "true", **query}, headers=HANDSHAKE) as answer:
        assert (answer.status, (await answer.json())["kind"]) == (code, "Status")


@pytest.mark.parametrize(
    ("changed", "status", "text"),
    [
        ({"Origin": ""}, 403, ""),
        ({"Origin": "nowhere"}, 403, ""),
        ({"Sec-WebSocket-Version": "12"}, 400, "missing or bad WebSocket Version"),
        ({"Sec-WebSocket-Key": ""}, 400, "mismatch challenge/response"),
        ({"Sec-WebSocket-Key": "short"}, 400, "mismatch challenge/response"),
        ({"Sec-WebSocket-Protocol": "a, b"}, 400, ""),
    ],
)
async def test_an_invalid_handshake_is_refused_as_by_upstream(
    cluster: FakeCluster, changed: dict[str, str], status: int, text: str
) -> None:
    async with (
        ClientSession(cluster.url) as http,
        http.get(MAPS, params={"watch": "true"}, headers=HANDSHAKE | changed) as answer,
    ):
        assert (answer.status, await answer.text()) == (status, text)


async def test_a_single_subprotocol_is_accepted(http: ClientSession) -> None:
    protocols = ("base64.binary.k8s.io",)
    async with http.ws_connect(MAPS, params={"watch": "true"}, protocols=protocols) as socket:
        assert socket.protocol == "base64.binary.k8s.io"


async def test_without_a_connection_header_the_watch_is_chunked(cluster: FakeCluster) -> None:
    headers = {"Upgrade": "websocket", "Connection": "keep-alive"}
    query = {"watch": "true", "timeoutSeconds": "1"}
    async with (
        ClientSession(cluster.url) as http,
        http.get(MAPS, params=query, headers=headers) as answer,
    ):
        assert (answer.status, answer.headers["Transfer-Encoding"]) == (200, "chunked")


async def test_rbac_forbids_the_watch_of_a_user_without_a_role() -> None:
    async with FakeCluster(rbac=True) as cluster, ClientSession(cluster.url) as http:
        headers = HANDSHAKE | {"Impersonate-User": "nobody"}
        async with http.get(MAPS, params={"watch": "true"}, headers=headers) as answer:
            assert answer.status == 403
            assert 'User "nobody" cannot watch resource' in (await answer.json())["message"]


@pytest.mark.parametrize("message", [b"text", b"\xff" * 20])
async def test_messages_of_the_client_are_ignored(http: ClientSession, message: bytes) -> None:
    async with http.ws_connect(MAPS, params={"watch": "true"}) as socket:
        await socket.send_frame(message, WSMsgType.BINARY)
        await create(http, "a")
        assert (await event(socket))[0] == "ADDED"


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x88\x80\x00\x00\x00\x00", id="close"),
        pytest.param(b"\xf3\x80\x00\x00\x00\x00", id="reserved-bits"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="no-frame"),
        pytest.param(b"", id="end-of-file"),
    ],
)
async def test_a_close_frame_or_garbage_ends_the_watch(
    cluster: FakeCluster, http: ClientSession, sent: bytes
) -> None:
    host, port = cluster.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"GET {MAPS}?watch=true HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in HANDSHAKE.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ")
    writer.write(sent)
    writer.write_eof()
    async with asyncio.timeout(10):
        await reader.read()
        while cluster.server.watchers:
            async with http.get("/livez"):
                pass
    writer.close()


@pytest.mark.parametrize(
    ("rule", "seen", "code"),
    [
        (fault("cut", after_frames=1), ["a"], 1006),
        (fault("cut", end="clean", after_frames=1), ["a"], 1000),
        (fault("drop", when="after", after_frames=2), ["a", "b"], 1006),
        (fault("lag", seconds=0.1), ["a", "b", "c"], 1000),
    ],
    ids=["abrupt", "clean", "drop", "lag"],
)
async def test_faults_of_watches_apply(
    cluster: FakeCluster, http: ClientSession, rule: Fault, seen: list[str], code: int
) -> None:
    cluster.faults.plan(rule.on("watch"))
    for name in "abc":
        await create(http, name)
    async with http.ws_connect(MAPS, params={"watch": "true", "timeoutSeconds": "2"}) as socket:
        assert (await names(socket), socket.close_code) == (seen, code)


@pytest.mark.parametrize(
    ("rule", "seen"),
    [
        (fault("cut", end="clean", after_frames=1), [("ADDED", "a"), ("CUT", "")]),
        (fault("expire", after_frames=1), [("ADDED", "a"), ("ERROR", "")]),
        (fault("duplicate"), [("ADDED", "a"), ("ADDED", "b")]),
    ],
    ids=["cut", "expire", "duplicate"],
)
async def test_faults_apply_to_frames(
    cluster: FakeCluster, http: ClientSession, rule: Fault, seen: list[tuple[str, str]]
) -> None:
    cluster.faults.plan(rule.on("watch"))
    for name in "ab":
        await create(http, name)
    query, headers = {"watch": "true", "timeoutSeconds": "1"}, {"Accept": f"{PROTOBUF},{JSON}"}
    async with http.get(MAPS, params=query, headers=headers) as answer:
        assert answer.content_type == PROTOBUF
        assert answer.headers["Content-Type"] == f"{PROTOBUF};stream=watch"
        events = read_frames(await answer.read())
    names = [(type_, found["metadata"].get("name", "") if found else "") for type_, found in events]
    assert names == seen


async def test_a_websocket_drops_a_frame_that_is_cut_off(
    cluster: FakeCluster, http: ClientSession
) -> None:
    cluster.faults.plan(fault("cut", end="clean", after_frames=1).on("watch"))
    for name in "ab":
        await create(http, name)
    headers = {"Accept": PROTOBUF}
    async with http.ws_connect(MAPS, params={"watch": "true"}, headers=headers) as socket:
        assert [read_event(each.data)[0] async for each in socket] == ["ADDED"]


async def test_rbac_forbids_a_watch_in_protobuf() -> None:
    headers = {"Accept": f"{PROTOBUF},{JSON}", "Impersonate-User": "nobody"}
    async with (
        FakeCluster(rbac=True) as cluster,
        ClientSession(cluster.url, headers=headers) as http,
        http.get(MAPS, params={"watch": "true"}) as answer,
    ):
        assert (answer.status, answer.content_type) == (403, PROTOBUF)
        assert read_protobuf(await answer.read())["reason"] == "Forbidden"


async def test_a_body_that_is_too_large_is_refused_in_protobuf(http: ClientSession) -> None:
    async with http.post(
        MAPS, data=BytesIO(bytes(4 * 1024**2)), headers={"Accept": PROTOBUF}
    ) as answer:
        assert (answer.status, answer.content_type) == (413, PROTOBUF)
        assert read_protobuf(await answer.read())["code"] == 413


async def test_stopping_ends_the_watch() -> None:
    async with ClientSession(headers={"Origin": "http://a"}) as http:
        async with FakeCluster() as cluster:
            socket = await http.ws_connect(f"{cluster.url}{MAPS}", params={"watch": "true"})
            reading = asyncio.create_task(names(socket))
            await asyncio.sleep(0)  # it waits for a message before the server stops
        assert (await reading, socket.close_code) == ([], 1000)
