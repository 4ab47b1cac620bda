"""HTTP/1.1 server of the API on aiohttp.

- Bodies are limited to 3 MiB as upstream (413 beyond), those of the management API to 1 GiB. A body
  is taken as it is sent: as upstream, the server never decompresses.
- Watches are chunked JSON lines or protobuf frames, or messages of a WebSocket
  (:mod:`fakeapi.apiserver.serving.watch_streams`). A client that does not read for
  ``STALL_SECONDS`` is disconnected; until then it costs the socket's buffers and a cursor, and does
  not affect other clients.
- A connection without a complete request head for ``IDLE_SECONDS`` is closed, a body that takes
  longer than ``BODY_SECONDS`` is rejected (504), and heads are limited to 1 MiB, as upstream.
- The client's certificate or token identifies the user (see
  :mod:`fakeapi.apiserver.auth.authentication`). The management API needs the same credentials, and
  with RBAC the right to the verb on its path (``get`` on ``/_fakeapi/export``).
- ``POST /_fakeapi/fork`` starts another server on a free port; it ends with this one.
- An internal error is a 500 Status and a log line; the server continues.
- Faults of a plan (:mod:`fakeapi.apiserver.serving.fault_delivery`) appear to clients as network
  failures: a dropped connection is reset, a cut response ends in the middle.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass
from random import Random
from typing import Final

import structlog
from aiohttp import web

from extender.kube.rest.clock import Clock
from extender.secure_serving.http_errors import StrictServer
from fakeapi.apiserver.auth.authentication import (
    AllowAnonymous,
    Authenticator,
    ClientCertificate,
    certificate_of,
    read_impersonation,
)
from fakeapi.apiserver.endpoints import Api, Request, Response, Watch, parse_query
from fakeapi.apiserver.printers.representation import error_response
from fakeapi.apiserver.serving.fault_delivery import (
    AnyWatch,
    DeliveredResponse,
    FaultDelivery,
    FaultyWatch,
)
from fakeapi.apiserver.serving.http_responses import (
    break_connection,
    cut_response,
    http_response,
    reset_connection,
    response_headers,
)
from fakeapi.apiserver.serving.local_transport import WatchPump, watch_timeout
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.apiserver.serving.watch_streams import (
    BinaryMessages,
    ChunkedStream,
    TextMessages,
    WatchStream,
    WebSocketStream,
    is_websocket,
    rejected_handshake,
)
from fakeapi.apiserver.testing.management_api import (
    PREFIX,
    ClockRequest,
    ManagementApi,
    describe_clock,
    parse_clock_request,
    requested_fork,
)
from fakeapi.apiserver.testing.object_requests import OBJECTS_PATH, object_request
from fakeapi.apiserver.testing.request_log import RequestRecord
from fakeapi.apiserver.webhooks.client import CallDispatcher, WebhookConnections
from fakeapi.apiserver.wire.errors import (
    StatusError,
    bad_request,
    internal_error,
    request_timeout,
    too_large_body,
)
from fakeapi.apiserver.wire.http_messages import JSON, User

MAX_BODY_BYTES: Final = 3 * 1024 * 1024
MAX_MANAGEMENT_BODY_BYTES: Final = 1024**3
MAX_HEAD_BYTES: Final = 1024**2
MAX_LOGGED_CHARACTERS: Final = 4096
STALL_SECONDS: Final = 60.0
IDLE_SECONDS: Final = 90.0
BODY_SECONDS: Final = 60.0
SHUTDOWN_SECONDS: Final = 2.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ServerTimeouts:
    """Timeouts for clients, in seconds.

    ``stall``: to read what a watch has written; ``idle``: to send a request's head; ``body``: to
    send its body.
    """

    stall: float = STALL_SECONDS
    idle: float = IDLE_SECONDS
    body: float = BODY_SECONDS


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of a server.

    ``authenticator`` identifies users; without one every client is the administrator. With ``tls``
    the server uses HTTPS. ``fork`` returns a server, not yet started, of the world forked from a
    snapshot; without it the server cannot be forked. ``background_tasks`` run while the server
    does.
    """

    timeouts: ServerTimeouts = ServerTimeouts()
    authenticator: Authenticator | None = None
    tls: ssl.SSLContext | None = None
    management: ManagementApi | None = None
    fork: Callable[[str], Server] | None = None
    background_tasks: AbstractAsyncContextManager[object] | None = None


class Server:
    """A server of one API on one port of the loopback interface (or of ``host``).

    ``rng`` chooses the timeouts of watches that request none.
    """

    def __init__(
        self, api: Api, clock: Clock, rng: Random, options: ServerOptions = ServerOptions()
    ) -> None:
        self.management = options.management or ManagementApi(api, clock.now_ns)
        self._fault_delivery = FaultDelivery(self.management.faults, clock)
        self._api = api
        self._connections = WebhookConnections()
        self._calls = CallDispatcher(api.pending_calls, self._connections.post, clock)
        self._clock = clock
        self._rng = rng
        self._timeouts = options.timeouts
        self._authenticator = options.authenticator or AllowAnonymous(api.tokens.user_of)
        api.identify = self._authenticator.token_user
        self._tls = options.tls
        self._fork = options.fork
        self._background_tasks = options.background_tasks
        self._running_tasks = AsyncExitStack()
        self._pumps: set[WatchPump] = set()
        self._forks: list[Server] = []
        self._runner: web.ServerRunner | None = None
        self._address = ("", 0)

    @property
    def url(self) -> str:
        """The base URL; "" before the start."""
        host, port = self._address
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}" if port else ""

    @property
    def watchers(self) -> int:
        """The number of watches that are being served."""
        return len(self._pumps)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen; port 0 picks a free port. Raises OSError if the address is not available."""
        self._runner = web.ServerRunner(
            StrictServer(
                self._serve,
                handler_cancellation=True,
                access_log=None,
                keepalive_timeout=self._timeouts.idle,
                max_line_size=MAX_HEAD_BYTES,
                max_field_size=MAX_HEAD_BYTES,
                auto_decompress=False,
            ),
            shutdown_timeout=SHUTDOWN_SECONDS,
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port, ssl_context=self._tls).start()
        self._address = (host, self._runner.addresses[0][1])
        if self._background_tasks is not None:
            await self._running_tasks.enter_async_context(self._background_tasks)

    async def stop(self) -> None:
        """End the watches, finish pending requests and stop listening; stop forks as well.

        Raises the error that ended a background task of the world.
        """
        try:
            await self._running_tasks.aclose()
        finally:
            await self._stop_serving()

    async def _stop_serving(self) -> None:
        for fork in self._forks:
            await fork.stop()
        for feed in tuple(self._pumps):
            feed.stop()
        if self._runner is not None:
            await self._runner.cleanup()
        await self._connections.close()

    async def _serve(self, http: web.BaseRequest) -> web.StreamResponse:
        body, headers = b"", dict[str, str]()
        try:
            user = self._authenticator.user(
                http.headers.get("Authorization", ""), self._certificate(http)
            )
            request = await _read_request(http, user, self._timeouts.body)
            body = request.body
            headers.update(self._api.flow_control.response_headers(request))
            outcome = await self._answer(request)
        except StatusError as error:
            answer = error_response(error, http.headers.get("Accept", ""))
            outcome = DeliveredResponse(answer, error.code)
        except Exception as error:  # noqa: BLE001 - the outermost loop: the server must continue
            _log.exception("request failed", method=http.method, path=http.path)
            outcome = DeliveredResponse(internal_error(repr(error)).response(), 500)
        self._record(http, body, outcome)
        if outcome.response is None:
            return reset_connection(http)
        if not isinstance(outcome.response, Response):
            return await self._stream(http, outcome.response, headers)
        if outcome.breaks:
            return await cut_response(http, outcome.response, headers)
        return await http_response(http, outcome.response, headers)

    async def _answer(self, request: Request) -> DeliveredResponse:
        if not request.path.startswith(PREFIX):
            return await self._fault_delivery.deliver(request, self._handle)
        if request.path == OBJECTS_PATH:
            found = await self._handle(object_request(self._api.kinds, request))
            return DeliveredResponse(found, found.status if isinstance(found, Response) else 200)
        answer = await self._manage(request)
        return DeliveredResponse(answer, answer.status)

    async def _handle(self, request: Request) -> Response | Watch:
        return await self._calls.run(lambda: self._api.handle(request))

    async def _manage(self, request: Request) -> Response:
        self._api.authorize(request)
        forking, order = requested_fork(request), parse_clock_request(request)
        if forking is not None and self._fork is not None:
            return await self._serve_fork(self._fork(forking))
        if order is not None:
            return await self._move_clock(order)
        return await self._calls.run(lambda: self.management.handle(request))

    async def _move_clock(self, order: ClockRequest) -> Response:
        clock = self._clock
        if not isinstance(clock, VirtualClock):
            raise StatusError(409, "Conflict", "the clock of this API server cannot be moved")
        if order.factor is not None:
            clock.run(order.factor)
        if order.jump:
            await clock.jump()
        try:
            await clock.advance(order.advance)
        except ValueError as error:
            raise bad_request(f"clock: advance: {error}") from None
        return describe_clock(clock.now_ns(), clock.monotonic(), clock.factor)

    async def _serve_fork(self, fork: Server) -> Response:
        await fork.start(self._address[0])
        self._forks.append(fork)
        return fork.management.describe(fork.url)

    def _certificate(self, http: web.BaseRequest) -> ClientCertificate | None:
        certificate = None
        if self._tls is not None and http.transport is not None:
            certificate = http.transport.get_extra_info("ssl_object")
        if certificate is None or not (encoded := certificate.getpeercert(binary_form=True)):
            return None
        sha256 = hashlib.sha256(encoded).hexdigest()
        return certificate_of(certificate.getpeercert()["subject"], sha256)

    def _record(self, http: web.BaseRequest, body: bytes, outcome: DeliveredResponse) -> None:
        if http.path.startswith(PREFIX):
            return
        headers = (http.headers.get(name, "") for name in ("User-Agent", "Content-Type"))
        texts = (http.path, http.rel_url.raw_query_string, *headers)
        path, query, user_agent, content_type = (text[:MAX_LOGGED_CHARACTERS] for text in texts)
        request_fields = http.method, path, query, user_agent
        response_fields = outcome.status, outcome.fault, content_type, body
        self.management.requests.append(RequestRecord(*request_fields, *response_fields))

    async def _stream(
        self, http: web.BaseRequest, watch: AnyWatch, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        feed = WatchPump(watch, self._clock, watch_timeout(watch, self._rng), self._calls)
        stream = _open_stream(http, feed, watch.content_type, headers)
        if isinstance(stream, Response):
            return await http_response(http, stream)
        self._pumps.add(feed)
        try:
            await stream.begin()
            async with aclosing(feed.batches()) as batches:
                async for lines in batches:
                    async with asyncio.timeout(self._timeouts.stall):
                        await stream.send(lines)
            if isinstance(watch, FaultyWatch) and watch.breaks:
                break_connection(http, watch.ending)
            else:
                await stream.end()
        except TimeoutError:
            if http.transport is not None:
                http.transport.abort()
        except ConnectionResetError:
            pass  # the client has disconnected; its watch ends
        finally:
            stream.cancel()
            self._pumps.discard(feed)
        return stream.response


def _open_stream(
    http: web.BaseRequest, feed: WatchPump, content_type: str, headers: Mapping[str, str]
) -> WatchStream | Response:
    """Return the stream that a request for a watch asks for, or the error of its handshake."""
    if not is_websocket(http.headers):
        return ChunkedStream(http, {**response_headers(content_type), **headers})
    messages = TextMessages() if content_type == JSON else BinaryMessages()
    return rejected_handshake(http.headers) or WebSocketStream(http, feed.stop, messages)


async def _read_request(http: web.BaseRequest, user: User, seconds: float) -> Request:
    """Read the whole request; raises StatusError (400, 413, 504)."""
    managing = http.path.startswith(PREFIX)
    limit = MAX_MANAGEMENT_BODY_BYTES if managing else MAX_BODY_BYTES
    body = await _read_body(http, limit, seconds) if http.can_read_body else b""
    return Request(
        method=http.method,
        path=http.path,
        query=parse_query(http.rel_url.raw_query_string),
        body=body,
        content_type=http.headers.get("Content-Type", ""),
        accept=http.headers.get("Accept", ""),
        user=user,
        if_none_match=http.headers.get("If-None-Match", ""),
        user_agent=http.headers.get("User-Agent", ""),
        impersonated=read_impersonation(http.headers.items()),
    )


async def _read_body(http: web.BaseRequest, limit: int, seconds: float) -> bytes:
    if (http.content_length or 0) > limit:
        raise too_large_body(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in http.content.iter_any():
                body += chunk
                if len(body) > limit:
                    raise too_large_body(limit)
    except TimeoutError:
        raise request_timeout() from None
    except web.RequestPayloadError:
        raise StatusError(400, "BadRequest", "the body is not valid HTTP") from None
    return bytes(body)
