"""The seam between what is said to an API server and how the bytes travel.

Everything above this module speaks `Request`, `Response` and `Stream`; below it lies a socket
(`http_transport`) or nothing but memory (a simulated server on virtual time). Any
implementation guarantees:

- Every failure to get an answer is a `TransportError`; an answer of any status is a value.
- A stream gives whole lines, in order, without their newline. A line that was cut off by the
  end of the stream is never given: half a watch frame is no event.
- A silent peer is noticed. If not one byte arrives for `Request.silence_limit` seconds, the
  exchange fails with a `SilentError`.
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
    """No answer: the peer was not reached, fell silent, or broke off. Trying again may help."""


class SilentError(TransportError):
    """The peer was reached, and then said nothing for as long as the request allows."""


class LineTooLongError(Exception):
    """A streamed line exceeds the bound. Asking for the same line again will not help."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, relative to the server's base URL.

    `path` is absolute and already percent-encoded; `query` keeps its order and is encoded here;
    `silence_limit` is the longest wait for the next byte of the answer, in seconds.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = "application/json"
    silence_limit: float = 60.0

    def __str__(self) -> str:
        return f"{self.method} {self.target}"

    @property
    def target(self) -> str:
        """Path and query as they stand in the request line."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer. Header names are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Stream(Protocol):
    """An answer that is still arriving. Header names are in lower case."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The response headers."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Whole lines without their newline. Raises TransportError, LineTooLongError."""
        ...

    async def read(self) -> bytes:
        """The body as one piece, cut after MAX_ERROR_BODY_BYTES; for answers that are errors."""
        ...


class Transport(Protocol):
    """A way to one API server."""

    async def request(self, request: Request) -> Response:
        """Send and await the whole answer. Raises TransportError."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Send and read the answer while it arrives. Raises TransportError on entering."""
        ...

    async def close(self) -> None:
        """Return every connection. Streams still open end with a TransportError."""
        ...


class LineSplitter:
    """Cuts a byte stream into lines, however it was chunked on its way. Linear in its input."""

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max = max_line_bytes
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without newlines. Raises LineTooLongError."""
        first, *rest = chunk.split(b"\n")
        self._hold(first)
        lines = []
        for part in rest:
            lines.append(b"".join(self._parts))
            self._parts, self._held = [], 0
            self._hold(part)
        return lines

    def _hold(self, part: bytes) -> None:
        self._held += len(part)
        if self._held > self._max:
            raise LineTooLongError(f"a streamed line exceeds {self._max} bytes")
        self._parts.append(part)
