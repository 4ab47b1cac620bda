"""The transport over a socket: HTTP/1.1 to one endpoint through aiohttp.

Responses are requested uncompressed: within a cluster, bandwidth is cheaper than decompression. The
Authorization header is obtained anew for every request. Proxies, redirects, cookies and netrc are
never taken from the environment; they come from the endpoint alone.

A peer that closes is detected at once, one that disappeared without closing by TCP keepalive within
about a minute, and one whose kernel runs while its process hangs by the request's `idle_timeout`.
"""

from __future__ import annotations

import os
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

from extender.kube.rest.transport import (
    MAX_ERROR_BODY_BYTES,
    MAX_LINE_BYTES,
    IdleTimeoutError,
    LineSplitter,
    Request,
    Response,
    Stream,
    TransportError,
)

CONNECT_SECONDS = 10.0


class Credentials(Protocol):
    """The client's credentials, obtained for every request since tokens are short-lived."""

    async def authorization(self) -> str | None:
        """Return the Authorization header, or None to send none. Raise TransportError."""
        ...

    def refused(self) -> None:
        """Record that the server answered 401 to the last header."""
        ...


class Anonymous:
    """No credentials, or only those in a TLS client certificate."""

    async def authorization(self) -> str | None:
        """Return None: no header is sent."""
        return None

    def refused(self) -> None:
        """Do nothing: there is no token to renew."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of an API server, with credentials and TLS configuration.

    `url` has no trailing slash and may have a base path; `tls_server_name` overrides the name
    that the certificate is checked against; `proxy` is a URL.
    """

    url: str
    credentials: Credentials = field(default_factory=Anonymous)
    tls: ssl.SSLContext | None = None
    tls_server_name: str | None = None
    proxy: str | None = None


class AiohttpTransport:
    """At most 100 connections to one endpoint. Create it inside a running event loop."""

    def __init__(self, endpoint: Endpoint, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._endpoint = endpoint
        self._max_line_bytes = max_line_bytes
        self._session = open_session(
            {
                "User-Agent": user_agent(),
                "Accept": "application/json",
                "Accept-Encoding": "identity",
            },
            tls=endpoint.tls,
        )

    @property
    def url(self) -> str:
        """The server's base URL."""
        return self._endpoint.url

    async def request(self, request: Request) -> Response:
        """Send a request and return the whole response. Raise TransportError."""
        async with self._exchange(request) as answer:
            with _TransportErrors(self._endpoint, request):
                body = await answer.read()
            return Response(answer.status, body, _with_lower_case_names(answer.headers))

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """Send a request and stream the response. Raise TransportError on entering."""
        async with self._exchange(request) as answer:
            errors = _TransportErrors(self._endpoint, request)
            yield _AiohttpStream(answer, errors, LineSplitter(self._max_line_bytes))

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    @asynccontextmanager
    async def _exchange(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        authorization = await self._endpoint.credentials.authorization()
        with _TransportErrors(self._endpoint, request):
            answer = await self._session.request(
                request.method,
                yarl.URL(self._endpoint.url + request.target, encoded=True),
                data=request.body,
                headers=_headers(request, authorization),
                timeout=aiohttp.ClientTimeout(
                    sock_connect=CONNECT_SECONDS, sock_read=request.idle_timeout
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
    """The lines of a response whose body is read only as fast as it is consumed."""

    def __init__(
        self, answer: aiohttp.ClientResponse, errors: _TransportErrors, splitter: LineSplitter
    ) -> None:
        self.status = answer.status
        self.headers = _with_lower_case_names(answer.headers)
        self._content = answer.content
        self._errors = errors
        self._splitter = splitter
        self._lines: deque[bytes] = deque()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._lines:
            with self._errors:
                chunk = await self._content.readany()
            if not chunk:
                raise StopAsyncIteration
            self._lines.extend(self._splitter.feed(chunk))
        return self._lines.popleft()

    async def read(self) -> bytes:
        """Return the body as one piece, cut after MAX_ERROR_BODY_BYTES."""
        body = b""
        with self._errors:
            while len(body) < MAX_ERROR_BODY_BYTES and (chunk := await self._content.readany()):
                body += chunk
        return body[:MAX_ERROR_BODY_BYTES]


class _TransportErrors:
    """Converts aiohttp's exceptions to TransportErrors that name server and request."""

    def __init__(self, endpoint: Endpoint, request: Request) -> None:
        self._where = f"{request.method} {endpoint.url}{request.target}"

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if isinstance(error, aiohttp.ClientError | OSError):
            silent = isinstance(error, aiohttp.SocketTimeoutError)
            kind = IdleTimeoutError if silent else TransportError
            raise kind(f"{self._where}: {describe_error(error)}") from error


def describe_error(error: Exception) -> str:
    """Return an error of aiohttp in one line; it words failed connections by its TLS options."""
    if not isinstance(error, aiohttp.ClientConnectorError):
        return " ".join(str(error).split()) or type(error).__name__
    host = f"[{error.host}]" if ":" in error.host else error.host
    cause = error.os_error
    reason = cause.strerror
    if cause.errno and not isinstance(cause, ssl.SSLError | socket.gaierror):
        reason = os.strerror(cause.errno)  # asyncio's text repeats the address
    return f"cannot connect to {host}:{error.port}: {reason or cause}"


def open_session(
    headers: Mapping[str, str],
    *,
    tls: ssl.SSLContext | None = None,
    max_connections: int = 100,
    trace: aiohttp.TraceConfig | None = None,
) -> aiohttp.ClientSession:
    """Return a session without cookies and timeouts, whose sockets have TCP keepalive.

    `max_connections` 0 means no limit. Call it inside a running event loop.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            ssl=tls or True, limit=max_connections, socket_factory=_socket_with_keepalive
        ),
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(),
        trace_configs=[trace] if trace else None,
    )


def client_tls(ca_file: str | None = None, ca_data: bytes | None = None) -> ssl.SSLContext:
    """Return the TLS context of a client that trusts these CAs; without any, the system's.

    ``ca_data`` is PEM. Raise OSError (ssl.SSLError) for CAs that cannot be read.
    """
    # Comments between certificates may be in any encoding; Python accepts only ASCII here.
    pem = None if ca_data is None else ca_data.decode("ascii", "backslashreplace")
    context = ssl.create_default_context(cafile=ca_file, cadata=pem)
    # As in Go, any certificate among the CAs is a trust anchor, a server's own one included.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # Python 3.13 requires extensions that Go omits from the certificates of most clusters.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def skip_verification(context: ssl.SSLContext) -> None:
    """Accept any certificate."""
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE


@cache
def user_agent() -> str:
    """Return the User-Agent of this client: `reprieve/VERSION`."""
    try:
        return f"reprieve/{version('reprieve')}"
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "reprieve/unknown"


def _headers(request: Request, authorization: str | None) -> dict[str, str]:
    headers = {} if authorization is None else {"Authorization": authorization}
    if request.body is not None:
        headers["Content-Type"] = request.content_type
    return headers


def _with_lower_case_names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _socket_with_keepalive(address: AddrInfoType) -> socket.socket:
    """Return a socket with TCP keepalive: probes after 30 s of silence, three at 10 s intervals."""
    family, kind, protocol, _, _ = address
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):  # Linux; elsewhere the host's defaults apply
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return sock
