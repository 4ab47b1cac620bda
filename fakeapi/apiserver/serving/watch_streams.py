"""Streams of watch events: lines or frames of a chunked response, or messages of a WebSocket.

A watch whose request asks for an upgrade to ``websocket`` (RFC 6455) is answered with 101, and each
event is a text message, or a binary one in protobuf (without the length of its frame). Messages of
the client are ignored; a close frame or an invalid frame ends the watch. The handshake follows
golang.org/x/net/websocket: a request without a valid ``Origin`` is forbidden, a single subprotocol
is accepted as it is, and several of them are a bad request.

Source: k8s.io/apiserver/pkg/endpoints/handlers/watch.go (HandleWS), golang.org/x/net/websocket.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol
from urllib.parse import urlsplit

from aiohttp import WSMsgType, web

from fakeapi.apiserver.wire.http_messages import TEXT, Response
from fakeapi.apiserver.wire.protobuf_encoder import FRAME_HEAD

_WEBSOCKET_VERSION: Final = "13"
_KEY_BYTES: Final = 16


class WatchStream(Protocol):
    """Sends the events of one watch, as lines or frames, to its client.

    Its methods raise ConnectionResetError if the client has disconnected.
    """

    @property
    def response(self) -> web.StreamResponse:
        """The response that is streamed."""

    async def begin(self) -> None:
        """Send the head of the response."""

    async def send(self, lines: Sequence[bytes]) -> None:
        """Send lines, and wait until the client takes them."""

    async def end(self) -> None:
        """End the response normally."""

    def cancel(self) -> None:
        """Release what the stream holds."""


class ChunkedStream:
    """A response whose chunks are JSON lines or protobuf frames."""

    def __init__(self, http: web.BaseRequest, headers: Mapping[str, str]) -> None:
        self.response = web.StreamResponse(headers=headers)
        self.response.enable_chunked_encoding()
        self._http = http

    async def begin(self) -> None:
        """Send the head of the response."""
        await self.response.prepare(self._http)

    async def send(self, lines: Sequence[bytes]) -> None:
        """Send lines, and wait until the client takes them."""
        await self.response.write(b"".join(lines))

    async def end(self) -> None:
        """Send the last chunk."""
        await self.response.write_eof()

    def cancel(self) -> None:
        """Release nothing: a chunked response has no task."""


class EventMessages(Protocol):
    """Makes the messages of a WebSocket from lines or frames."""

    type: WSMsgType

    def content(self, event: bytes) -> bytes | None:
        """Return the message of an event, or None if the event was cut off."""


class TextMessages:
    """Messages with lines of JSON."""

    type = WSMsgType.TEXT

    def content(self, event: bytes) -> bytes | None:
        """Return the line, if it is complete."""
        return event if event.endswith(b"\n") else None


class BinaryMessages:
    """Messages with events in protobuf."""

    type = WSMsgType.BINARY

    def content(self, event: bytes) -> bytes | None:
        """Return the frame without its length, if it is complete."""
        head, content = event[:FRAME_HEAD], event[FRAME_HEAD:]
        return content if int.from_bytes(head, "big") == len(content) else None


class WebSocketStream:
    """A WebSocket whose messages are events; ``stop`` is called when the client closes it."""

    def __init__(
        self, http: web.BaseRequest, stop: Callable[[], None], messages: EventMessages
    ) -> None:
        protocols = requested_protocols(http.headers)
        self.response = web.WebSocketResponse(protocols=protocols, compress=False)
        self._http = http
        self._stop = stop
        self._messages = messages
        self._receiver: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Complete the handshake."""
        await self.response.prepare(self._http)
        self._receiver = asyncio.create_task(self._receive())

    async def send(self, lines: Sequence[bytes]) -> None:
        """Send each complete event as a message; one that was cut off is dropped."""
        for line in lines:
            content = self._messages.content(line)
            if content is not None:
                await self.response.send_frame(content, self._messages.type)

    async def end(self) -> None:
        """Send a close frame."""
        await self.response.close()

    def cancel(self) -> None:
        """Stop reading messages."""
        if self._receiver is not None:
            self._receiver.cancel()

    async def _receive(self) -> None:
        """Ignore messages until the client closes the connection or violates the protocol."""
        with suppress(ConnectionResetError):
            while (await self.response.receive()).type in (WSMsgType.TEXT, WSMsgType.BINARY):
                pass
        self._stop()


def is_websocket(headers: Mapping[str, str]) -> bool:
    """Return whether a request asks for an upgrade to a WebSocket."""
    upgrade = headers.get("Upgrade", "").lower()
    return upgrade == "websocket" and "upgrade" in headers.get("Connection", "").lower()


def requested_protocols(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the subprotocols that a client offers."""
    offered = headers.get("Sec-WebSocket-Protocol", "").strip()
    return tuple(each.strip() for each in offered.split(",")) if offered else ()


def rejected_handshake(headers: Mapping[str, str]) -> Response | None:
    """Return the response to a handshake that is invalid, or None if it is valid."""
    if not _is_key(headers.get("Sec-WebSocket-Key", "")):
        return Response(400, b"mismatch challenge/response", TEXT)
    if headers.get("Sec-WebSocket-Version") != _WEBSOCKET_VERSION:
        version = {"Sec-WebSocket-Version": _WEBSOCKET_VERSION}
        return Response(400, b"missing or bad WebSocket Version", TEXT, version)
    if not _is_request_uri(headers.get("Origin", "")):
        return Response(403, b"", TEXT)
    return Response(400, b"", TEXT) if len(requested_protocols(headers)) > 1 else None


def _is_key(text: str) -> bool:
    """Return whether a key is 16 bytes in base64, as RFC 6455 requires."""
    try:
        return len(b64decode(text)) == _KEY_BYTES
    except ValueError:
        return False


def _is_request_uri(origin: str) -> bool:
    """Return whether Go's ``url.ParseRequestURI`` accepts an origin."""
    try:
        return bool(urlsplit(origin).scheme) or origin.startswith("/")
    except ValueError:
        return False
