"""Calling webhooks for an API that waits for nothing (:mod:`fakeapi.api.outcalls`).

:class:`Errands` drives the API: it makes the calls that the API asks for, several at once where
they do not depend on each other, and begins again with the answers. Others are served meanwhile.
How long a call may take is told by the world's clock.

Calls are HTTPS; the certificate must be signed by the caller's CA bundle, or by one that the system
trusts where there is none. :class:`Connections` keeps connections open for a while, as an API
server does: to shake hands takes longer than to ask.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from inspect import isawaitable
from types import SimpleNamespace
from typing import Any, Final, TypeVar

import aiohttp
import orjson

from extender.kube.clock import Clock
from fakeapi.api.outcalls import (
    MOST_CALLS,
    AnsweredError,
    Attempts,
    Outbox,
    OutCall,
    OutCallError,
    SuspendedError,
    told,
)

T = TypeVar("T")
Send = Callable[[OutCall], Awaitable[bytes]]
"""Makes a call and gives the body of its answer; raises OutCallError."""

_REMEMBERED: Final = 64
_KEPT_SECONDS: Final = 10.0
_CLOSED: Final = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)
_OVERDUE: Final = "context deadline exceeded"
_UNPARSED: Final = "unable to load root certificates: unable to parse bytes as PEM block"
_WORDS: Final = {
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


class Errands:
    """Makes what an API asks for happen, by ``send``, in the time of ``clock``."""

    def __init__(self, outbox: Outbox, send: Send, clock: Clock) -> None:
        self._outbox = outbox
        self._send = send
        self._clock = clock

    async def run(self, act: Callable[[], T]) -> T:
        """Give what ``act`` gives once every call that it needs has been made."""
        attempts = Attempts()
        while True:
            try:
                with self._outbox.attempt(attempts):
                    return act()
            except SuspendedError as suspended:
                calls = suspended.calls
            if len(attempts.answers) >= MOST_CALLS:
                refusal = OutCallError("too many calls for one request")
                attempts.answers |= dict.fromkeys(calls, refusal)
                continue
            answers = await asyncio.gather(*(self._make(call) for call in calls))
            attempts.answers |= dict(zip(calls, answers, strict=True))

    async def _make(self, call: OutCall) -> bytes | OutCallError:
        """Make one call, in the time that it has."""
        making = asyncio.ensure_future(_ask(call) if call.hook is not None else self._send(call))
        alarm = asyncio.ensure_future(self._clock.sleep(call.timeout_seconds))
        try:
            await asyncio.wait((making, alarm), return_when=asyncio.FIRST_COMPLETED)
            return making.result() if making.done() else OutCallError(_OVERDUE)
        except OutCallError as error:
            return error
        finally:
            making.cancel()
            alarm.cancel()
            await asyncio.gather(making, alarm, return_exceptions=True)


async def _ask(call: OutCall) -> bytes:
    assert call.hook is not None
    answer = call.hook(orjson.loads(call.body))
    return told(await answer if isawaitable(answer) else answer)


class Connections:
    """Makes calls over HTTPS, on connections that may be used again; to be closed."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def post(self, call: OutCall) -> bytes:
        """Make a call; raises OutCallError, worded as Go's client words it."""
        told = _Told()
        try:
            return await self._post(call, told)
        except (aiohttp.ClientError, ssl.SSLError, OSError) as error:
            if not (told.reused and isinstance(error, _CLOSED)):
                raise OutCallError(_worded(error)) from None
        return await self.post(call)  # the other side had closed a connection that was idle

    async def close(self) -> None:
        """Close what is open."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _post(self, call: OutCall, told: _Told) -> bytes:
        async with self._opened().post(
            call.url,
            data=call.body,
            ssl=_context(call.ca_bundle),
            server_hostname=call.host or None,
            allow_redirects=False,
            trace_request_ctx=told,
        ) as answer:
            body = await answer.read()
            if not answer.ok or answer.status >= 300:
                raise AnsweredError(_answered(answer.status, body))
            return body

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            tracing = aiohttp.TraceConfig()
            tracing.on_connection_reuseconn.append(_note_reuse)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_SECONDS),
                headers={"Content-Type": "application/json", "Accept": "application/json"},
                timeout=aiohttp.ClientTimeout(total=None),
                trace_configs=[tracing],
            )
        return self._session


async def post(call: OutCall) -> bytes:
    """Make one call, on a connection of its own; raises OutCallError."""
    connections = Connections()
    try:
        return await connections.post(call)
    finally:
        await connections.close()


@dataclass(slots=True)
class _Told:
    """What is told of one call: whether its connection had been used before."""

    reused: bool = False


async def _note_reuse(_session: aiohttp.ClientSession, of: SimpleNamespace, _params: Any) -> None:
    of.trace_request_ctx.reused = True


@lru_cache(maxsize=_REMEMBERED)
def _context(ca_bundle: bytes) -> ssl.SSLContext:
    """Give what connections are checked by; raises OutCallError."""
    try:
        return ssl.create_default_context(cadata=ca_bundle.decode() if ca_bundle else None)
    except (ssl.SSLError, ValueError):
        raise OutCallError(_UNPARSED) from None


def _answered(status: int, body: bytes) -> str:
    """Word an answer that says no, as client-go does; a Status speaks for itself."""
    text = body.decode(errors="replace").strip()
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if isinstance(document, dict) and document.get("kind") == "Status" and document.get("message"):
        return str(document["message"])
    if status in _WORDS:
        return _WORDS[status]
    if status == 403:
        return text or "unknown"
    if status >= 500:
        shown = orjson.dumps(text or "unknown").decode()
        return f"an error on the server ({shown}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


def _worded(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return f"tls: failed to verify certificate: x509: {_reason(error)}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorError):
        place = f"{error.host}:{error.port}"
        if isinstance(error.os_error, ConnectionRefusedError):
            return f"dial tcp {place}: connect: connection refused"
        return f"dial tcp {place}: {error.os_error.strerror or error.os_error}"
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError):
        return "EOF"
    return str(error) or type(error).__name__


def _reason(error: Exception) -> str:
    text = str(error)
    if "self-signed" in text or "unable to get local issuer" in text:
        return "certificate signed by unknown authority"
    return text.partition("certificate verify failed:")[2].strip(" ]()") or text
