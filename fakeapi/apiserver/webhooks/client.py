"""Client for the webhook calls of a pure API (:mod:`fakeapi.apiserver.webhooks.calls`).

:class:`CallDispatcher` runs the API: it makes the pending calls, independent ones concurrently, and
runs the request again with the answers. Other requests are served meanwhile.

Timeouts use the world's clock. One task serves all pending timeouts: one that does not expire costs
an entry in a dict. Without pending timeouts no task sleeps on the clock, so that a jumping virtual
clock does not stop at times at which nothing is due.

Calls use HTTPS. The certificate must be signed by the configuration's CA bundle, or by a CA that
the system trusts if there is no bundle. :class:`WebhookConnections` keeps idle connections open for
a while, as an API server does, because a TLS handshake takes longer than a call.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from inspect import isawaitable
from types import TracebackType
from typing import Final, Self, TypeVar

import orjson

from extender.kube.rest.clock import Clock
from extender.kube.rest.http_transport import client_tls
from fakeapi.apiserver.webhooks.calls import (
    MAX_CALLS,
    CallsPendingError,
    InvalidReviewError,
    PendingCalls,
    RequestAttempts,
    WebhookCall,
    WebhookCallError,
    encode_answer,
)
from fakeapi.http_client import HttpClient, HttpClientError


class TimeoutScheduler:
    """Expires timeouts by ``clock``; its task ends with the last pending timeout."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[ScheduledTimeout, float] = {}
        self._task: asyncio.Task[None] | None = None
        self._next = 0.0

    def timeout(self, seconds: float) -> ScheduledTimeout:
        """Return an ``async with`` that raises TimeoutError once ``seconds`` have passed in it."""
        return ScheduledTimeout(self, seconds)

    def start(self, timeout: ScheduledTimeout, seconds: float) -> None:
        """Expire a timeout once ``seconds`` have passed."""
        due = self._due[timeout] = self._clock.monotonic() + seconds
        if self._task is None or due < self._next:
            self._restart(due)

    def remove(self, timeout: ScheduledTimeout) -> None:
        """Remove a timeout."""
        del self._due[timeout]
        if not self._due and self._task is not None:
            self._task.cancel()
            self._task = None

    def _restart(self, due: float) -> None:
        if self._task is not None:
            self._task.cancel()
        self._next = due
        self._task = asyncio.create_task(self._expire_due())

    async def _expire_due(self) -> None:
        while True:
            await self._clock.sleep(self._next - self._clock.monotonic())
            for limit, due in self._due.items():
                if due <= self._next:
                    limit.expire()
            later = [due for due in self._due.values() if due > self._next]
            if not later:
                self._task = None
                return
            self._next = min(later)


class ScheduledTimeout:
    """An ``async with`` block with a timeout; ``has_expired`` identifies its own TimeoutError."""

    def __init__(self, scheduler: TimeoutScheduler, seconds: float) -> None:
        self._deadlines = scheduler
        self._seconds = seconds
        self._timeout = asyncio.timeout(None)

    @property
    def has_expired(self) -> bool:
        """Whether the timeout expired before the block ended."""
        return self._timeout.expired()

    def expire(self) -> None:
        """Cancel the block at its next await."""
        self._timeout.reschedule(0)

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._deadlines.start(self, self._seconds)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._deadlines.remove(self)
        await self._timeout.__aexit__(kind, error, trace)


T = TypeVar("T")
SendCall = Callable[[WebhookCall], Awaitable[bytes]]
"""Makes a call and returns the body of its response; raises WebhookCallError."""

_MAX_CACHED_CONTEXTS: Final = 64
_HEADERS: Final = {"Accept": "application/json, */*", "User-Agent": "kube-apiserver-admission"}
_DEADLINE_EXCEEDED: Final = "context deadline exceeded"
_INVALID_CA_BUNDLE: Final = "unable to load root certificates: unable to parse bytes as PEM block"
_STATUS_MESSAGES: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    415: "the media type of the request body is not supported by the server",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be "
    "processing the request",
}


class CallDispatcher:
    """Makes the pending calls of an API with ``send``; timeouts use ``clock``."""

    def __init__(self, outbox: PendingCalls, send: SendCall, clock: Clock) -> None:
        self._outbox = outbox
        self._send = send
        self._deadlines = TimeoutScheduler(clock)

    async def run(self, act: Callable[[], T]) -> T:
        """Return the result of ``act`` once all calls that it needs have been made."""
        attempts = RequestAttempts()
        while True:
            try:
                with self._outbox.attempt(attempts):
                    return act()
            except CallsPendingError as suspended:
                calls = suspended.calls
            if len(attempts.answers) >= MAX_CALLS:
                error = WebhookCallError("too many calls for one request")
                attempts.answers |= dict.fromkeys(calls, error)
                continue
            answers = await self._make_all(calls)
            attempts.answers |= dict(zip(calls, answers, strict=True))

    async def _make_all(self, calls: Sequence[WebhookCall]) -> Sequence[bytes | WebhookCallError]:
        if len(calls) == 1 and calls[0].hook is None:
            # A single call needs no task. A call to an in-process webhook has one nevertheless, so
            # that other tasks run first and receive earlier events.
            return [await self._make(calls[0])]
        return await asyncio.gather(*(self._make(call) for call in calls))

    async def _make(self, call: WebhookCall) -> bytes | WebhookCallError:
        limit = self._deadlines.timeout(call.timeout_seconds)
        try:
            async with limit:
                return await (_call_in_process(call) if call.hook is not None else self._send(call))
        except WebhookCallError as error:
            return error
        except TimeoutError:
            if not limit.has_expired:
                raise
            return WebhookCallError(_DEADLINE_EXCEEDED)


async def _call_in_process(call: WebhookCall) -> bytes:
    assert call.hook is not None
    answer = call.hook(orjson.loads(call.body))
    return encode_answer(await answer if isawaitable(answer) else answer)


class WebhookConnections:
    """Makes calls over HTTPS on reusable connections; must be closed."""

    def __init__(self) -> None:
        self._client = HttpClient(_HEADERS)

    async def post(self, call: WebhookCall) -> bytes:
        """Make a call; raises WebhookCallError with the text of Go's HTTP client."""
        context = _context(call.ca_bundle)
        try:
            answer = await self._client.post(call.url, call.body, context, call.host)
        except HttpClientError as error:
            raise WebhookCallError(str(error)) from None
        if not 200 <= answer.status < 300:
            raise InvalidReviewError(_status_error_message(answer.status, answer.body))
        return answer.body

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()


async def post_once(call: WebhookCall) -> bytes:
    """Make one call on a new connection; raises WebhookCallError."""
    connections = WebhookConnections()
    try:
        return await connections.post(call)
    finally:
        await connections.close()


@lru_cache(maxsize=_MAX_CACHED_CONTEXTS)
def _context(ca_bundle: bytes) -> ssl.SSLContext:
    """Return the TLS context for a CA bundle; raises WebhookCallError."""
    try:
        return client_tls(ca_data=ca_bundle or None)
    except OSError:
        raise WebhookCallError(_INVALID_CA_BUNDLE) from None


def _status_error_message(status: int, body: bytes) -> str:
    """Return the error text of a failed response as client-go: a Status has its own message."""
    text = body.decode(errors="replace").strip()
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if isinstance(document, dict) and document.get("kind") == "Status" and document.get("message"):
        return str(document["message"])
    if status in _STATUS_MESSAGES:
        return _STATUS_MESSAGES[status]
    if status == 403:
        return text or "unknown"
    if status >= 500:
        quoted = orjson.dumps(text or "unknown").decode()
        return f"an error on the server ({quoted}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"
