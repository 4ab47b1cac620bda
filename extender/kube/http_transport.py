"""The transport that has a socket: HTTP/1.1 to one endpoint through aiohttp.

Answers are asked for uncompressed: within a cluster the wire is cheaper than inflating. The
Authorization header is asked for anew with every request. Proxies, redirects, cookies and netrc
are never picked up from the surroundings; the endpoint says everything.

A peer that closes is noticed at once, a peer that vanished without closing by TCP keepalive
within about a minute, and one whose kernel lives while its process is stuck by the request's
`silence_limit`.
"""

from __future__ import annotations

import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

import aiohttp
import yarl
from aiohttp.connector import AddrInfoType

from extender.kube.transport import (
    MAX_ERROR_BODY_BYTES,
    MAX_LINE_BYTES,
    LineSplitter,
    Request,
    Response,
    SilentError,
    Stream,
    TransportError,
)

CONNECT_SECONDS = 10.0


class Credentials(Protocol):
    """Who we are, asked anew for every request since tokens are short-lived."""

    async def authorization(self) -> str | None:
        """The Authorization header, or None to go without. Raises TransportError."""
        ...

    def refused(self) -> None:
        """Note that the server answered 401 to the last header."""
        ...


class Anonymous:
    """No credentials, or only those in a TLS client certificate."""

    async def authorization(self) -> str | None:
        """None: no header is sent."""
        return None

    def refused(self) -> None:
        """Nothing to renew."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an API server is and how to be let in.

    `url` has no trailing slash and may carry a base path; `tls_server_name` overrides the name
    that the certificate is checked against; `proxy` is a URL.
    """

    url: str
    credentials: Credentials = field(default_factory=Anonymous)
    tls: ssl.SSLContext | None = None
    tls_server_name: str | None = None
    proxy: str | None = None


class AiohttpTransport:
    """At most 100 connections to one endpoint. Build it inside a running event loop."""

    def __init__(self, endpoint: Endpoint, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._endpoint = endpoint
        self._max_line_bytes = max_line_bytes
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                ssl=endpoint.tls or True, socket_factory=_socket_with_keepalive
            ),
            headers={
                "User-Agent": user_agent(),
                "Accept": "application/json",
                "Accept-Encoding": "identity",
            },
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    @property
    def url(self) -> str:
        """The server's base URL."""
        return self._endpoint.url

    async def request(self, request: Request) -> Response:
        """Send and await the whole answer. Raises TransportError."""
        async with self._exchange(request) as answer:
            with _Faults(self._endpoint, request):
                body = await answer.read()
            return Response(answer.status, body, _lowered(answer.headers))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """Send and read the answer while it arrives. Raises TransportError on entering."""
        async with self._exchange(request) as answer:
            faults = _Faults(self._endpoint, request)
            yield _AiohttpStream(answer, faults, LineSplitter(self._max_line_bytes))

    async def close(self) -> None:
        """Return every connection."""
        await self._session.close()

    @asynccontextmanager
    async def _exchange(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        authorization = await self._endpoint.credentials.authorization()
        with _Faults(self._endpoint, request):
            answer = await self._session.request(
                request.method,
                yarl.URL(self._endpoint.url + request.target, encoded=True),
                data=request.body,
                headers=_headers(request, authorization),
                timeout=aiohttp.ClientTimeout(
                    sock_connect=CONNECT_SECONDS, sock_read=request.silence_limit
                ),
                proxy=self._endpoint.proxy,
                server_hostname=self._endpoint.tls_server_name,
                allow_redirects=False,
            )
        if answer.status == 401:
            self._endpoint.credentials.refused()
        try:
            yield answer
        finally:
            # Not release(): an unfinished watch has no end to wait for.
            answer.close()


class _AiohttpStream:
    """Lines of an answer whose body is read only as fast as it is asked for."""

    def __init__(
        self, answer: aiohttp.ClientResponse, faults: _Faults, splitter: LineSplitter
    ) -> None:
        self.status = answer.status
        self.headers = _lowered(answer.headers)
        self._content = answer.content
        self._faults = faults
        self._splitter = splitter
        self._lines: deque[bytes] = deque()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._lines:
            with self._faults:
                chunk = await self._content.readany()
            if not chunk:
                raise StopAsyncIteration
            self._lines.extend(self._splitter.feed(chunk))
        return self._lines.popleft()

    async def read(self) -> bytes:
        """The body as one piece, cut after MAX_ERROR_BODY_BYTES."""
        body = b""
        with self._faults:
            while len(body) < MAX_ERROR_BODY_BYTES and (chunk := await self._content.readany()):
                body += chunk
        return body[:MAX_ERROR_BODY_BYTES]


class _Faults:
    """Turns aiohttp's ways to fail into TransportErrors that name server and request."""

    def __init__(self, endpoint: Endpoint, request: Request) -> None:
        self._where = f"{request.method} {endpoint.url}{request.target}"

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, fault: object, trace: object) -> None:
        if isinstance(fault, aiohttp.ClientError | OSError):
            detail = " ".join(str(fault).split()) or type(fault).__name__
            silent = isinstance(fault, aiohttp.SocketTimeoutError)
            kind = SilentError if silent else TransportError
            raise kind(f"{self._where}: {detail}") from fault


@cache
def user_agent() -> str:
    """How we name ourselves to servers: `reprieve/VERSION`."""
    try:
        return f"reprieve/{version('reprieve')}"
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "reprieve/unknown"


def _headers(request: Request, authorization: str | None) -> dict[str, str]:
    headers = {} if authorization is None else {"Authorization": authorization}
    if request.body is not None:
        headers["Content-Type"] = request.content_type
    return headers


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _socket_with_keepalive(address: AddrInfoType) -> socket.socket:
    """A socket that asks a silent peer after 30 s, thrice every 10 s, whether it still lives."""
    family, kind, protocol, _, _ = address
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):  # Linux; elsewhere the host's defaults hold
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return sock
