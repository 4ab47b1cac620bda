"""The least HTTP/1.1 that a benchmark needs, so that the server is what is measured.

A connection carries one request at a time. Bodies come with a length or in chunks; a watch is read
chunk by chunk, and an event may be spread over several.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit

JSON = "application/json"
MERGE = "application/merge-patch+json"
_BUFFER = 2**20


@dataclass(frozen=True, slots=True)
class Address:
    """A server's address and credentials; a self-signed certificate is accepted."""

    url: str
    token: str = ""

    async def connect(self) -> Connection:
        """Open a connection."""
        parts = urlsplit(self.url)
        tls = None
        if parts.scheme == "https":
            tls = ssl.create_default_context()
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        reader, writer = await asyncio.open_connection(
            parts.hostname, parts.port, ssl=tls, limit=_BUFFER
        )
        authorization = f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        return Connection(reader, writer, f"Host: {parts.netloc}\r\n{authorization}")


class RequestFailedError(RuntimeError):
    """The server answered with something else than success."""


class Connection:
    """One connection to a server, kept alive."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._headers = headers

    async def ask(
        self, method: str, target: str, body: bytes = b"", content_type: str = JSON
    ) -> bytes:
        """Send a request and give the answer's body; raises RequestFailedError."""
        status, headers = await self._exchange(method, target, body, content_type)
        if b"content-length" in headers:
            answer = await self._reader.readexactly(int(headers[b"content-length"]))
        else:
            answer = b"".join([chunk async for chunk in self._chunks()])
        if status >= 300:
            raise RequestFailedError(f"{method} {target} answered {status}: {answer[:300]!r}")
        return answer

    async def watch(self, target: str) -> AsyncIterator[bytes]:
        """Return a watch's bytes as they arrive."""
        status, _ = await self._exchange("GET", target, b"", JSON)
        if status != 200:
            raise RequestFailedError(f"watching {target} answered {status}")
        async for piece in self._chunks():
            yield piece

    def close(self) -> None:
        """Return the connection back."""
        self._writer.close()

    async def _exchange(
        self, method: str, target: str, body: bytes, content_type: str
    ) -> tuple[int, dict[bytes, bytes]]:
        extra = f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n" if body else ""
        head = f"{method} {target} HTTP/1.1\r\n{self._headers}Accept: {JSON}\r\n{extra}\r\n"
        self._writer.write(head.encode() + body)
        await self._writer.drain()
        lines = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        pairs = (line.split(b":", 1) for line in lines[1:] if line)
        headers = {name.lower(): value.strip() for name, value in pairs}
        return int(lines[0].split()[1]), headers

    async def _chunks(self) -> AsyncIterator[bytes]:
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readuntil(b"\r\n")
