"""Calling webhooks for an API that waits for nothing (:mod:`fakeapi.api.outcalls`).

:class:`Errands` drives the API: it makes the calls that the API asks for and begins again with the
answers. Calls are HTTPS; the certificate must be signed by the caller's CA bundle, or by one that
the system trusts where there is none.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import aiohttp

from fakeapi.api.outcalls import (
    MOST_CALLS,
    Attempts,
    Outbox,
    OutCall,
    OutCallError,
    SuspendedError,
)

T = TypeVar("T")
Send = Callable[[OutCall], Awaitable[bytes]]
"""Makes a call and gives the body of its answer; raises OutCallError."""

_OK: Final = 200


class Errands:
    """Makes what an API asks for happen, by ``send``."""

    def __init__(self, outbox: Outbox, send: Send) -> None:
        self._outbox = outbox
        self._send = send

    async def run(self, act: Callable[[], T]) -> T:
        """Give what ``act`` gives once every call that it needs has been made."""
        attempts = Attempts()
        while True:
            try:
                with self._outbox.attempt(attempts):
                    return act()
            except SuspendedError as suspended:
                call = suspended.call
            if len(attempts.answers) >= MOST_CALLS:
                attempts.answers[call] = OutCallError("too many calls for one request")
                continue
            try:
                attempts.answers[call] = await self._send(call)
            except OutCallError as error:
                attempts.answers[call] = error


async def refuse(call: OutCall) -> bytes:
    """Make no calls: there are no sockets here."""
    raise OutCallError(f"no route to {call.url.partition('?')[0]}: there are no sockets here")


async def post(call: OutCall) -> bytes:
    """Make a call over HTTPS; raises OutCallError, worded as Go's client words it."""
    timeout = aiohttp.ClientTimeout(total=call.timeout_seconds)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(
                call.url,
                data=call.body,
                headers=headers,
                ssl=_context(call.ca_bundle),
                server_hostname=call.host or None,
                allow_redirects=False,
            ) as answer,
        ):
            body = await answer.read()
            if answer.status != _OK:
                why = body.decode(errors="replace").strip() or answer.reason
                raise OutCallError(f"the server responded with status {answer.status}: {why}")
            return body
    except TimeoutError:
        raise OutCallError("context deadline exceeded") from None
    except (aiohttp.ClientError, ssl.SSLError, OSError) as error:
        raise OutCallError(_worded(error)) from None


def _context(ca_bundle: bytes) -> ssl.SSLContext:
    """Give what connections are checked by; raises OutCallError."""
    try:
        return ssl.create_default_context(cadata=ca_bundle.decode() if ca_bundle else None)
    except (ssl.SSLError, ValueError):
        raise OutCallError(
            "unable to load root certificates: unable to parse bytes as PEM block"
        ) from None


def _worded(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return f"tls: failed to verify certificate: x509: {_reason(error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        place = f"{error.host}:{error.port}"
        if isinstance(error.os_error, ConnectionRefusedError):
            return f"dial tcp {place}: connect: connection refused"
        return f"dial tcp {place}: {error.os_error.strerror or error.os_error}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    return str(error) or type(error).__name__


def _reason(error: Exception) -> str:
    text = str(error)
    if "self-signed" in text or "unable to get local issuer" in text:
        return "certificate signed by unknown authority"
    return text.partition("certificate verify failed:")[2].strip(" ]()") or text
