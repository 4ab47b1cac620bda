"""Responses on a connection of aiohttp: whole, cut in the middle, or replaced by a reset.

Responses of more than 128 KiB are compressed at the fastest level for clients that accept gzip, in
a thread, so that other requests are served meanwhile.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import zlib
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Final

import orjson
from aiohttp import web

from fakeapi.apiserver.endpoints import Response
from fakeapi.apiserver.serving.fault_delivery import first_half

GZIP_BYTES: Final = 128 * 1024
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS  # 16: gzip format
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)  # SO_LINGER with timeout 0: RST


async def http_response(
    http: web.BaseRequest, answer: Response, server_headers: Mapping[str, str] = _NONE
) -> web.Response:
    """Return an answer as a response of aiohttp, compressed if its client accepts that.

    The headers of the answer replace those of the server.
    """
    headers = {**response_headers(answer.content_type), **server_headers, **answer.headers}
    pieces = _pieces(answer) if answer.rest else None
    body = answer.body
    is_large = pieces is not None or len(body) > GZIP_BYTES
    if is_large and "gzip" in http.headers.get("Accept-Encoding", ""):
        if pieces is None:
            body = await asyncio.to_thread(_gzip, body)
        else:
            pieces = _compressed(pieces)
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = ", ".join(filter(None, (headers.get("Vary"), "Accept-Encoding")))
    response = web.Response(status=answer.status, body=pieces or body, headers=headers)
    for warning in answer.warnings:
        response.headers.add("Warning", f"299 - {orjson.dumps(warning).decode()}")
    return response


async def cut_response(
    http: web.BaseRequest, answer: Response, server_headers: Mapping[str, str]
) -> web.StreamResponse:
    """Send the head of the whole response and half of its body, and close the connection."""
    whole = await http_response(http, answer.joined, server_headers)
    body = whole.body if isinstance(whole.body, bytes) else b""
    response = web.StreamResponse(status=whole.status, headers=whole.headers)
    response.content_length = len(body)
    await response.prepare(http)
    await response.write(first_half(body))
    break_connection(http, "abrupt")
    return response


def break_connection(http: web.BaseRequest, ending: str) -> None:
    """End a connection during a response: ``reset`` at once, ``abrupt`` after pending writes."""
    if ending == "reset":
        reset_connection(http)
    elif http.transport is not None:
        http.transport.close()


def reset_connection(http: web.BaseRequest) -> web.StreamResponse:
    """Reset the client's connection; return a response that is never sent."""
    if http.transport is not None:
        connection = http.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        http.transport.abort()
    return web.Response()


def _gzip(body: bytes) -> bytes:
    return zlib.compress(body, level=1, wbits=_GZIP_WINDOW)


async def _pieces(answer: Response) -> AsyncIterator[bytes]:
    """Yield the pieces of a body; other requests are served in between."""
    yield answer.body
    for piece in answer.rest:
        await asyncio.sleep(0)
        yield piece


async def _compressed(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    compressor = zlib.compressobj(level=1, wbits=_GZIP_WINDOW)
    async for piece in pieces:
        yield await asyncio.to_thread(compressor.compress, piece)
    yield compressor.flush()


def response_headers(content_type: str) -> dict[str, str]:
    """Return the headers that every response has."""
    return {"Content-Type": content_type, "Cache-Control": "no-cache, private"}
