"""The transport interface: HTTP requests to an API server, independent of sockets.

The client above uses `Request`, `Response` and `Stream`; below is a socket (`http_transport`) or
memory (a simulated server on virtual time). Every implementation guarantees:

- Every failure to receive a response is a `TransportError`; a response of any status is a value.
- A stream consists of complete lines, in order, without their newline. A line that is cut off by
  the end of the stream is dropped: half a watch frame is not an event.
- A silent peer is detected. If not one byte arrives for `Request.idle_timeout` seconds, the
  request fails with an `IdleTimeoutError`.
- Memory is bounded while streaming: one read buffer plus at most one line of
  `MAX_LINE_BYTES`. A reader that stops reading makes the peer stop sending.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlencode

MAX_LINE_BYTES = 16 * 2**20
MAX_ERROR_BODY_BYTES = 2**20


class TransportError(Exception):
    """No response: the peer was not reached, was silent, or closed. A retry may succeed."""


class IdleTimeoutError(TransportError):
    """The peer was reached, but sent nothing for the request's idle timeout."""


class LineTooLongError(Exception):
    """A streamed line exceeds the limit. A retry of the same request does not help."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, relative to the server's base URL.

    `path` is absolute and already percent-encoded; `query` keeps its order and is encoded here;
    `idle_timeout` is the longest wait for the next byte of the response, in seconds.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = "application/json"
    idle_timeout: float = 60.0

    def __str__(self) -> str:
        return f"{self.method} {self.target}"

    @property
    def target(self) -> str:
        """The path and query of the request line."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response. Header names are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Stream(Protocol):
    """A response that is still arriving. Header names are in lower case."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The response headers."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over complete lines without newline. Raise TransportError, LineTooLongError."""
        ...

    async def read(self) -> bytes:
        """Return the body of an error response, cut after MAX_ERROR_BODY_BYTES."""
        ...


class Transport(Protocol):
    """A connection to one API server."""

    async def request(self, request: Request) -> Response:
        """Send a request and return the whole response. Raise TransportError."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Send a request and stream the response. Raise TransportError on entering."""
        ...

    async def close(self) -> None:
        """Close every connection. Open streams end with a TransportError."""
        ...


class LineSplitter:
    """Splits a byte stream into lines, independent of its chunks, in linear time."""

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max = max_line_bytes
        self._parts: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes, without newlines. Raise LineTooLongError."""
        first, *rest = chunk.split(b"\n")
        self._append(first)
        lines = []
        for part in rest:
            lines.append(b"".join(self._parts))
            self._parts, self._length = [], 0
            self._append(part)
        return lines

    def _append(self, part: bytes) -> None:
        self._length += len(part)
        if self._length > self._max:
            raise LineTooLongError(f"a streamed line exceeds {self._max} bytes")
        self._parts.append(part)
