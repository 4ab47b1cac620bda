"""The HTTP client of the components that make calls: POSTs of JSON, with the errors of Go's client.

A call on a reused connection that the server closed before it answered is made again on another
connection. A call on a new connection is made once.

aiohttp does not report a malformed chunk that arrives after the head: such a call waits for its
timeout.

Source: net/http/transport.go (shouldRetryRequest), net/http/transfer.go, net/textproto.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Final

import aiohttp

from extender.kube.rest.http_transport import open_session
from extender.kube.rest.transport import Response

MAX_HEADER_BYTES: Final = 2**20

_HEADERS: Final = {"Accept-Encoding": "gzip", "Content-Type": "application/json"}
_EOF: Final = "EOF"
_UNEXPECTED_EOF: Final = "unexpected EOF"
_QUOTED_LINE: Final = re.compile(r"""^ *b(['"])(.*)\1$""", re.MULTILINE)


class HttpClientError(Exception):
    """A call without a response; the message is that of Go's client, without the URL."""


class HttpClient:
    """Makes calls on any number of reusable connections; must be closed."""

    def __init__(self, headers: Mapping[str, str], max_redirects: int = 0) -> None:
        self._headers = {**_HEADERS, **headers}
        self._max_redirects = max_redirects
        self._session: aiohttp.ClientSession | None = None

    async def post(
        self, url: str, body: bytes, tls: ssl.SSLContext | None = None, server_name: str = ""
    ) -> Response:
        """Send JSON and return the response; raise HttpClientError.

        ``server_name`` is the name that the certificate must be for, by default the URL's host.
        """
        while True:
            connection = SimpleNamespace(reused=False)
            try:
                return await self._post(url, body, tls, server_name, connection)
            except (aiohttp.ClientError, OSError, ValueError) as error:
                text = _error_text(error)
            if text != _EOF or not connection.reused:
                raise HttpClientError(text)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def _post(
        self,
        url: str,
        body: bytes,
        tls: ssl.SSLContext | None,
        server_name: str,
        connection: SimpleNamespace,
    ) -> Response:
        if self._session is None:
            trace = aiohttp.TraceConfig()
            trace.on_connection_reuseconn.append(_record_reuse)
            self._session = open_session(self._headers, max_connections=0, trace=trace)
        async with self._session.post(
            url,
            data=body,
            ssl=tls or True,
            server_hostname=server_name or None,
            allow_redirects=self._max_redirects > 0,
            max_redirects=self._max_redirects,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADER_BYTES,
            trace_request_ctx=connection,
        ) as answer:
            return Response(answer.status, await answer.read())


async def _record_reuse(
    _session: aiohttp.ClientSession, context: SimpleNamespace, _connection: object
) -> None:
    context.trace_request_ctx.reused = True


def _error_text(error: Exception) -> str:
    """Return the text of an error of aiohttp as Go's client words it."""
    if isinstance(error, aiohttp.InvalidURL):
        return "unsupported protocol scheme"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return f"tls: failed to verify certificate: x509: {_verification_error(error.__cause__)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return _dial_error(error)
    if isinstance(error, aiohttp.ServerDisconnectedError):  # its message is the incomplete head
        return _EOF if isinstance(error.message, str) else _UNEXPECTED_EOF
    if isinstance(error, OSError):
        return _EOF
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ClientResponseError):
        return _parse_error(error)
    return str(error) or type(error).__name__


def _dial_error(error: aiohttp.ClientConnectorError) -> str:
    cause = error.os_error
    if isinstance(cause, ConnectionResetError):  # during the TLS handshake
        return _EOF
    host = f"[{error.host}]" if ":" in error.host else error.host
    reason = os.strerror(cause.errno).lower() if cause.errno else str(cause)
    return f"dial tcp {host}:{error.port}: connect: {reason}"


def _verification_error(error: BaseException | None) -> str:
    text = str(error)
    if "self-signed" in text or "unable to get local issuer" in text:
        return "certificate signed by unknown authority"
    return text.partition("certificate verify failed:")[2].strip(" ]()") or text


def _parse_error(error: aiohttp.ClientPayloadError | aiohttp.ClientResponseError) -> str:
    """Return the text for a malformed response; aiohttp's message quotes the malformed line."""
    message = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    quoted = _QUOTED_LINE.search(message)
    line = quoted[2] if quoted else message
    if "chunk size" in message:
        return "invalid byte in chunk length"
    if isinstance(error, aiohttp.ClientPayloadError):
        return _UNEXPECTED_EOF
    if message.startswith("Bad status line"):
        return f'malformed HTTP response "{line}"'
    if message.startswith("Got more than"):
        return f"server response headers exceeded {MAX_HEADER_BYTES} bytes"
    if "in Content-Length" in message:
        return f'bad Content-Length "{line.partition(":")[2].strip()}"'
    return f"malformed MIME header line: {line}"
