"""The transport over a socket: real connections to a small server; lines and requests."""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from aiohttp.client_reqrep import ConnectionKey
from hypothesis import given
from hypothesis import strategies as st

from extender.kube.rest.http_transport import (
    AiohttpTransport,
    Endpoint,
    client_tls,
    describe_error,
    user_agent,
)
from extender.kube.rest.transport import LineSplitter, LineTooLongError, Request, TransportError
from extender.secure_serving.self_signed import CertificateAuthority

WATCH = Request("GET", "/api/v1/pods", (("watch", "true"),))
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def a_server(handler: Handler) -> AsyncIterator[str]:
    """Serve `handler` for every path, and return the base URL."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0)  # type: ignore[arg-type]
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def a_socket(answer: bytes, *, hold: asyncio.Event | None = None) -> AsyncIterator[str]:
    """Serve `answer` byte for byte, then close the connection, or once `hold` is set."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        if hold is not None:
            await hold.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}"
        if hold is not None:
            hold.set()


@asynccontextmanager
async def a_transport(url: str, **options: int) -> AsyncIterator[AiohttpTransport]:
    transport = AiohttpTransport(Endpoint(url), **options)
    try:
        yield transport
    finally:
        await transport.close()


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + end


async def lines_of(transport: AiohttpTransport, into: list[bytes]) -> None:
    async with transport.stream(WATCH) as stream:
        async for line in stream:
            into.append(line)  # noqa: PERF401 lines before an error count


async def test_a_request_is_sent_completely() -> None:
    got: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        got.extend([request.method, request.raw_path, (await request.read()).decode()])
        got.extend(request.headers[name] for name in ("Content-Type", "User-Agent", "Accept"))
        return web.Response(status=201, body=b"made", headers={"X-Kind": "odd"})

    request = Request(
        "PATCH", "/api/v1/nodes/a%2Fb", (("labelSelector", "a in (b,c)"),), b"{}", "application/x"
    )
    async with a_server(handler) as url, a_transport(f"{url}/base") as transport:
        response = await transport.request(request)
    assert got == [
        "PATCH",
        "/base/api/v1/nodes/a%2Fb?labelSelector=a+in+%28b%2Cc%29",
        "{}",
        "application/x",
        user_agent(),
        "application/json",
    ]
    assert (response.status, response.body) == (201, b"made")
    assert response.headers["x-kind"] == "odd"


async def test_requests_have_a_user_agent() -> None:
    assert user_agent().startswith("reprieve/")


async def test_requests_accept_no_compression_and_have_no_credentials() -> None:
    seen: list[str | None] = []

    async def handler(request: web.Request) -> web.Response:
        seen.extend(request.headers.get(name) for name in ("Accept-Encoding", "Authorization"))
        return web.Response()

    async with a_server(handler) as url, a_transport(url) as transport:
        await transport.request(Request("GET", "/"))
    assert seen == ["identity", None]


async def test_a_refusal_is_a_response_and_a_redirect_is_not_followed() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=int(request.path[1:]), headers={"Location": "/200"})

    async with a_server(handler) as url, a_transport(url) as transport:
        for status in (302, 404, 500):
            assert (await transport.request(Request("GET", f"/{status}"))).status == status


async def test_connections_are_reused() -> None:
    ports: set[int] = set()

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername")[1])
        return web.Response(body=b"x" * 100_000)

    async with a_server(handler) as url, a_transport(url) as transport:
        for _ in range(5):
            await transport.request(Request("GET", "/"))
    assert len(ports) == 1


async def test_an_unreachable_server_is_reported() -> None:
    async with a_socket(b"") as url:
        pass
    async with a_transport(url) as transport:
        with pytest.raises(TransportError) as failed:
            await transport.request(Request("GET", "/livez"))
    address = url.removeprefix("http://")
    refused = f"GET {url}/livez: cannot connect to {address}: Connection refused"
    assert str(failed.value) == refused


KEY = ConnectionKey("::1", 443, True, True, None, None, None)  # noqa: FBT003 - as of aiohttp
ERRORS: dict[str, tuple[Exception, str]] = {
    "refused": (
        aiohttp.ClientConnectorError(KEY, OSError(111, "Connect call failed ('::1', 443)")),
        "cannot connect to [::1]:443: Connection refused",
    ),
    "several addresses": (
        aiohttp.ClientConnectorError(KEY, OSError("Multiple exceptions: a, b")),
        "cannot connect to [::1]:443: Multiple exceptions: a, b",
    ),
    "an unknown name": (
        aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(-2, "Name or service not known")),
        "cannot connect to [::1]:443: Name or service not known",
    ),
    "no TLS": (
        aiohttp.ClientConnectorSSLError(KEY, ssl.SSLError(1, "wrong version number")),
        "cannot connect to [::1]:443: wrong version number",
    ),
    "two lines": (aiohttp.ClientPayloadError("half\na body"), "half a body"),
    "no text": (aiohttp.ClientPayloadError(), "ClientPayloadError"),
}


@pytest.mark.parametrize(("error", "line"), ERRORS.values(), ids=ERRORS)
def test_an_error_of_the_connection_is_one_line(error: Exception, line: str) -> None:
    assert describe_error(error) == line


async def test_a_connection_closed_without_a_response_is_an_error() -> None:
    async with a_socket(b"") as url, a_transport(url) as transport:
        with pytest.raises(TransportError, match="disconnected"):
            await transport.request(Request("GET", "/"))


async def test_a_truncated_response_is_an_error() -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"
    async with a_socket(cut) as url, a_transport(url) as transport:
        with pytest.raises(TransportError):
            await transport.request(Request("GET", "/"))


async def test_an_unresponsive_server_times_out() -> None:
    hold = asyncio.Event()
    async with (
        a_socket(chunked(b"one\n", end=b""), hold=hold) as url,
        a_transport(url) as transport,
    ):
        quick = Request("GET", "/", idle_timeout=0.05)
        with pytest.raises(TransportError, match=f"GET {url}/: "):
            await transport.request(quick)
        async with transport.stream(quick) as stream:
            lines = aiter(stream)
            assert await anext(lines) == b"one"
            with pytest.raises(TransportError):
                await anext(lines)


async def test_lines_are_complete_however_they_were_split() -> None:
    got: list[bytes] = []
    answer = chunked(b'{"a"', b":1}\n{", b'"b":2}\n', b"\n", b"last\n")
    async with a_socket(answer) as url, a_transport(url) as transport:
        await lines_of(transport, got)
    assert got == [b'{"a":1}', b'{"b":2}', b"", b"last"]


async def test_a_truncated_last_line_is_dropped() -> None:
    got: list[bytes] = []
    async with a_socket(chunked(b"whole\n", b'{"ha')) as url, a_transport(url) as transport:
        await lines_of(transport, got)
    assert got == [b"whole"]


async def test_a_lost_connection_is_an_error_after_the_received_lines() -> None:
    hold = asyncio.Event()
    answer = chunked(b"whole\n", b'{"ha', end=b"")
    async with (
        a_socket(answer, hold=hold) as url,
        a_transport(url) as transport,
        transport.stream(WATCH) as stream,
    ):
        lines = aiter(stream)
        assert await anext(lines) == b"whole"
        hold.set()
        with pytest.raises(TransportError, match="watch=true"):
            await anext(lines)


async def test_a_streamed_line_over_the_limit_is_an_error() -> None:
    answer = chunked(b"x" * 64, b"x" * 64)
    async with a_socket(answer) as url, a_transport(url, max_line_bytes=100) as transport:
        with pytest.raises(LineTooLongError):
            await lines_of(transport, [])


async def test_a_large_line_is_complete() -> None:
    got: list[bytes] = []
    large = b"x" * 3_000_000
    async with a_socket(chunked(large, b"\n")) as url, a_transport(url) as transport:
        await lines_of(transport, got)
    assert got == [large]


async def test_the_server_stops_when_the_reader_stops() -> None:
    unsent: list[int] = []

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"x\n" * 2**25)
        for _ in range(2_000):
            await asyncio.sleep(0)
            unsent.append(writer.transport.get_write_buffer_size())
        writer.transport.abort()

    async with await asyncio.start_server(flood, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with a_transport(f"http://127.0.0.1:{port}") as transport, transport.stream(WATCH):
            while len(unsent) < 2_000:  # noqa: ASYNC110 iterations of the event loop are counted
                await asyncio.sleep(0)
    assert unsent[-1] == unsent[-1_000] > 2**25


async def test_the_body_of_a_refused_stream_can_be_read() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=403, body=b"x" * 2_000_000)

    async with (
        a_server(handler) as url,
        a_transport(url) as transport,
        transport.stream(WATCH) as stream,
    ):
        assert stream.status == 403
        assert len(await stream.read()) == 2**20


async def test_leaving_a_stream_closes_the_connection() -> None:
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(chunked(b"one\n", end=b""))
        assert await reader.read() == b""
        left.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with a_transport(f"http://127.0.0.1:{port}") as transport:
            async with transport.stream(WATCH) as stream:
                assert await anext(aiter(stream)) == b"one"
            await left.wait()


class RenewedToken:
    """Credentials whose token is renewed after each refusal."""

    def __init__(self) -> None:
        self.number = 1

    async def authorization(self) -> str | None:
        return f"Bearer t{self.number}"

    def refused(self) -> None:
        self.number += 1


async def test_every_request_has_the_current_token() -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        return web.Response(status=401 if len(seen) < 3 else 200)

    async with a_server(handler) as url:
        transport = AiohttpTransport(Endpoint(url, RenewedToken()))
        await transport.request(Request("GET", "/"))
        async with transport.stream(WATCH) as stream:
            assert stream.status == 401
        await transport.request(Request("GET", "/"))
        await transport.request(Request("GET", "/"))
        await transport.close()
    assert seen == ["Bearer t1", "Bearer t2", "Bearer t3", "Bearer t3"]


async def test_the_proxy_of_the_endpoint_is_used() -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.host.partition(":")[0])
        return web.Response(body=b"by proxy")

    async with a_server(handler) as proxy:
        transport = AiohttpTransport(Endpoint("http://api.invalid:6443", proxy=proxy))
        response = await transport.request(Request("GET", "/livez"))
        await transport.close()
    assert (response.body, seen) == (b"by proxy", ["api.invalid"])


@given(st.lists(st.binary(max_size=6)), st.lists(st.integers(0, 40), max_size=8))
def test_lines_do_not_depend_on_the_chunks(parts: list[bytes], cuts: list[int]) -> None:
    whole = b"\n".join(parts)
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    splitter = LineSplitter()
    lines = [
        line for start, end in itertools.pairwise(edges) for line in splitter.feed(whole[start:end])
    ]
    assert lines == whole.split(b"\n")[:-1]


def test_a_line_may_be_as_long_as_the_limit() -> None:
    assert LineSplitter(4).feed(b"1234\n12") == [b"1234"]


@pytest.mark.parametrize("chunks", [[b"12345\n"], [b"123", b"45"], [b"1\n12345"]])
def test_a_line_over_the_limit_is_an_error_before_it_is_complete(chunks: list[bytes]) -> None:
    splitter = LineSplitter(4)
    *before, last = chunks
    for chunk in before:
        splitter.feed(chunk)
    with pytest.raises(LineTooLongError, match="exceeds 4 bytes"):
        splitter.feed(last)


def test_the_text_of_a_request_is_its_request_line() -> None:
    request = Request("GET", "/api/v1/pods", (("labelSelector", "a=b,c"), ("limit", "5")))
    assert str(request) == "GET /api/v1/pods?labelSelector=a%3Db%2Cc&limit=5"
    assert str(Request("DELETE", "/api/v1/nodes/n")) == "DELETE /api/v1/nodes/n"


class TestTrustedAuthorities:
    def test_a_comment_in_another_encoding_does_not_matter(self) -> None:
        authority = CertificateAuthority().certificate
        commented = "# Zürich\n".encode() + authority + b"# \xfc\n"
        assert client_tls(ca_data=commented).cert_store_stats()["x509_ca"] == 1

    @pytest.mark.parametrize("pem", [b"\xfc", b"nothing", "é".encode()])
    def test_bytes_without_a_certificate_are_an_error(self, pem: bytes) -> None:
        with pytest.raises(OSError, match=r"PEM|start line"):
            client_tls(ca_data=pem)
