"""The API behind a socket: HTTP/1.1 on aiohttp, as thin as it can be.

- Bodies are limited to 3 MiB as upstream (413 beyond), those of the management to 1 GiB.
- Watches are chunked JSON lines. A client that does not read for ``STALL_SECONDS`` is cut off;
  until then it costs the socket's buffers and a cursor, and no other client notices.
- Answers are never compressed.
- A fault of this server is a 500 Status and a line in the log; the server goes on.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from random import Random
from typing import Final

import structlog
from aiohttp import web

from extender.kube.clock import Clock
from fakeapi.api import Api, Request, Response, Watch, parse_query
from fakeapi.api.errors import StatusError, internal_error, too_large_body
from fakeapi.api.management import PREFIX, Management, RequestRecord
from fakeapi.transport import WatchFeed, watch_timeout

MAX_BODY_BYTES: Final = 3 * 1024 * 1024
MAX_MANAGEMENT_BODY_BYTES: Final = 1024**3
STALL_SECONDS: Final = 60.0
SHUTDOWN_SECONDS: Final = 2.0

_log = structlog.get_logger(__name__)


class Server:
    """One API on one port of the loopback interface (or of ``host``).

    ``rng`` picks the timeouts of watches that name none; a client that leaves a watch unread for
    ``stall_seconds`` is cut off.
    """

    def __init__(
        self, api: Api, clock: Clock, rng: Random, stall_seconds: float = STALL_SECONDS
    ) -> None:
        self.management = Management(api)
        self._api = api
        self._clock = clock
        self._rng = rng
        self._stall_seconds = stall_seconds
        self._feeds: set[WatchFeed] = set()
        self._runner = web.ServerRunner(
            web.Server(self._serve, handler_cancellation=True, access_log=None),
            shutdown_timeout=SHUTDOWN_SECONDS,
        )
        self._url = ""

    @property
    def url(self) -> str:
        """The base URL; empty before the start."""
        return self._url

    @property
    def watchers(self) -> int:
        """How many watches are being served."""
        return len(self._feeds)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen; port 0 picks a free one. Raises OSError if the address cannot be had."""
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        bound = self._runner.addresses[0][1]
        self._url = f"http://[{host}]:{bound}" if ":" in host else f"http://{host}:{bound}"

    async def stop(self) -> None:
        """End the watches, answer what is under way, and stop listening."""
        for feed in tuple(self._feeds):
            feed.stop()
        await self._runner.cleanup()

    async def _serve(self, http: web.BaseRequest) -> web.StreamResponse:
        try:
            answer = self._answer(await _read_request(http))
        except StatusError as error:
            answer = error.response()
        except Exception as error:  # noqa: BLE001 - the outermost loop: the server must go on
            _log.exception("request failed", method=http.method, path=http.path)
            answer = internal_error(repr(error)).response()
        self._record(http, answer)
        if isinstance(answer, Watch):
            return await self._stream(http, answer)
        return _http_response(answer)

    def _answer(self, request: Request) -> Response | Watch:
        if request.path.startswith(PREFIX):
            return self.management.handle(request)
        return self._api.handle(request)

    def _record(self, http: web.BaseRequest, answer: Response | Watch) -> None:
        if http.path.startswith(PREFIX):
            return
        status = 200 if isinstance(answer, Watch) else answer.status
        query = http.rel_url.raw_query_string
        user_agent = http.headers.get("User-Agent", "")
        record = RequestRecord(http.method, http.path, query, user_agent, status)
        self.management.requests.append(record)

    async def _stream(self, http: web.BaseRequest, watch: Watch) -> web.StreamResponse:
        feed = WatchFeed(watch, self._clock, watch_timeout(watch, self._rng))
        response = web.StreamResponse(headers=_headers("application/json"))
        response.enable_chunked_encoding()
        self._feeds.add(feed)
        try:
            await response.prepare(http)
            async with aclosing(feed.batches()) as batches:
                async for lines in batches:
                    async with asyncio.timeout(self._stall_seconds):
                        await response.write(b"".join(lines))
            await response.write_eof()
        except TimeoutError:
            if http.transport is not None:
                http.transport.abort()
        except ConnectionResetError:
            pass  # the client has gone; its watch goes with it
        finally:
            self._feeds.discard(feed)
        return response


async def _read_request(http: web.BaseRequest) -> Request:
    """Read the whole request; raises StatusError (413)."""
    managing = http.path.startswith(PREFIX)
    limit = MAX_MANAGEMENT_BODY_BYTES if managing else MAX_BODY_BYTES
    body = await _read_body(http, limit) if http.can_read_body else b""
    return Request(
        method=http.method,
        path=http.path,
        query=parse_query(http.rel_url.raw_query_string),
        body=body,
        content_type=http.headers.get("Content-Type", ""),
        accept=http.headers.get("Accept", ""),
    )


async def _read_body(http: web.BaseRequest, limit: int) -> bytes:
    if (http.content_length or 0) > limit:
        raise too_large_body(limit)
    body = bytearray()
    async for chunk in http.content.iter_any():
        body += chunk
        if len(body) > limit:
            raise too_large_body(limit)
    return bytes(body)


def _http_response(answer: Response) -> web.Response:
    headers = _headers(answer.content_type)
    return web.Response(status=answer.status, body=answer.body, headers=headers)


def _headers(content_type: str) -> dict[str, str]:
    return {"Content-Type": content_type, "Cache-Control": "no-cache, private"}
