"""Calls over raw sockets: requests, errors in Go's words, and the reuse of connections."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from extender.kube.rest.http_transport import client_tls
from extender.kube.rest.transport import Response
from fakeapi.apiserver.serving.client_access import create_tls
from fakeapi.http_client import MAX_HEADER_BYTES, HttpClient, HttpClientError

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MOVED = b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class RawServer:
    """Answers the requests of each connection with these bytes in turn, then closes it."""

    def __init__(self, *answers: bytes) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self._answers = answers

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(asyncio.IncompleteReadError):
            for answer in self._answers:
                self.requests.append(await reader.readuntil(b"\r\n\r\n{}"))
                writer.write(answer)
        writer.close()


@asynccontextmanager
async def served(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve raw connections; return the URL."""
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}/hook?timeout=3s"


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    client = HttpClient({"User-Agent": "test"})
    yield client
    await client.close()


async def test_request(client: HttpClient) -> None:
    server = RawServer(OK)
    async with served(server) as url:
        assert await client.post(url, b"{}") == Response(200, b"ok")
    first, *headers = server.requests[0].decode().split("\r\n")
    assert first == "POST /hook?timeout=3s HTTP/1.1"
    assert {f"Host: {url.split('/')[2]}", "Content-Type: application/json"} < set(headers)
    assert {"User-Agent: test", "Content-Length: 2", "{}"} < set(headers)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (CHUNKED + b"2;name=value\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n", b"ok"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * (MAX_HEADER_BYTES // 2) + OK[15:], b"ok"),
    ],
    ids=["chunks", "until the connection ends", "informational", "long header"],
)
async def test_response(client: HttpClient, answer: bytes, body: bytes) -> None:
    async with served(RawServer(answer)) as url:
        assert await client.post(url, b"{}") == Response(200, body)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"", "EOF"),
        (OK[:20], "unexpected EOF"),
        (OK[:-1], "unexpected EOF"),
        (CHUNKED + b"5\r\nabc", "unexpected EOF"),
        (CHUNKED + b"-5\r\n", "invalid byte in chunk length"),
        (b"SSH-2.0\r\n\r\n", 'malformed HTTP response "SSH-2.0"'),
        (b"HTTP/1.1 abc\r\n\r\n", 'malformed HTTP response "HTTP/1.1 abc"'),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 'bad Content-Length "-1"'),
        (b"HTTP/1.1 200 OK\r\nX Y: 1\r\n\r\n", "malformed MIME header line: X Y: 1"),
        (
            b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEADER_BYTES + b"x\r\n\r\n",
            "server response headers exceeded 1048576 bytes",
        ),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)
async def test_malformed_response(client: HttpClient, answer: bytes, text: str) -> None:
    server = RawServer(answer)
    async with served(server) as url:
        with pytest.raises(HttpClientError) as caught:
            await client.post(url, b"{}")
    assert str(caught.value) == text
    assert server.connections == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_connection_refused(client: HttpClient, host: str, unused_tcp_port: int) -> None:
    place = f"{host}:{unused_tcp_port}"
    with pytest.raises(HttpClientError) as caught:
        await client.post(f"http://{place}/", b"{}")
    assert str(caught.value) == f"dial tcp {place}: connect: connection refused"


async def test_unknown_host(client: HttpClient) -> None:
    with pytest.raises(HttpClientError, match=r"^dial tcp: lookup nowhere\.invalid: no such host$"):
        await client.post("http://nowhere.invalid/", b"{}")


@pytest.mark.parametrize(
    ("answers", "connections"),
    [([OK] * 9, 1), ([OK], 3), ([OK + OK, OK], 3)],
    ids=["kept", "closed by the server", "bytes after the response"],
)
async def test_connection_reuse(client: HttpClient, answers: list[bytes], connections: int) -> None:
    server, tls = RawServer(*answers), create_tls("127.0.0.1")
    trusting = client_tls(ca_data=tls.authority.certificate)
    async with served(server, tls.server) as url:
        for _ in range(3):
            assert await client.post(url, b"{}", trusting) == Response(200, b"ok")
        await client.close()
    assert server.connections == connections


async def test_concurrent_calls_use_a_connection_each(client: HttpClient) -> None:
    async with served(RawServer(OK)) as url:
        answers = await asyncio.gather(*(client.post(url, b"{}") for _ in range(5)))
    assert answers == 5 * [Response(200, b"ok")]


async def test_redirects_are_not_followed(client: HttpClient) -> None:
    server = RawServer(MOVED, OK)
    async with served(server) as url:
        assert await client.post(url, b"{}") == Response(302, b"")
    assert len(server.requests) == 1
