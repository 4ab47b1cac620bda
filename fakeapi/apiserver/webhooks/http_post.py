"""HTTP/1.1 as far as asking webhooks needs it: POSTs of JSON, on connections that are kept.

    kept            for KEPT_SECONDS, unless the other side says that it closes
    asked again     where a kept connection turns out to have been closed before any answer

No redirects, proxies, cookies or compression: an API server that asks a webhook has none of them.
A client that has takes as long for each request as everything else that a create does.

Source: RFC 9112.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import yarl

from fakeapi.apiserver.webhooks.http_response import Answer, Incoming, MalformedAnswerError

KEPT_SECONDS: Final = 10.0

_REMEMBERED: Final = 256


class ClosedError(ConnectionError):
    """The other side has closed the connection; ``begun``: in the middle of its answer."""

    def __init__(self, *, begun: bool) -> None:
        super().__init__("unexpected EOF" if begun else "EOF")
        self.begun = begun


@dataclass(frozen=True, slots=True)
class Place:
    """Whom to ask: ``tls`` checks certificates, which must bear ``name``; None is plain HTTP."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    name: str


class Poster:
    """Posts on connections that are used again within ``kept_seconds``; to be closed."""

    def __init__(self, kept_seconds: float = KEPT_SECONDS) -> None:
        self._kept_seconds = kept_seconds
        self._idle: dict[Place, list[_Connection]] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    async def post(
        self, url: str, body: bytes, tls: ssl.SSLContext | None, name: str = ""
    ) -> Answer:
        """Post JSON. Raises OSError (ssl.SSLError, ClosedError, …), MalformedAnswerError.

        ``tls`` counts for https only; ``name`` is what the certificate must bear, by default the
        URL's host.
        """
        asked = _asked_by(url)
        place = Place(asked.host, asked.port, tls if asked.secure else None, name or asked.host)
        request = b"%s%d\r\n\r\n%s" % (asked.head, len(body), body)
        while (kept := self._take(place)) is not None:
            try:
                return await self._exchange(place, kept, request)
            except ClosedError as error:
                if error.begun:
                    raise
        return await self._exchange(place, await _connect(place), request)

    async def close(self) -> None:
        """Close what is open and not in use."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        idle, self._idle = self._idle, {}
        connections = [each for several in idle.values() for each in several]
        for each in connections:
            each.abort()
        await asyncio.gather(*(each.gone for each in connections))

    async def _exchange(self, place: Place, connection: _Connection, request: bytes) -> Answer:
        try:
            answer = await connection.exchange(request)
        except BaseException:
            connection.abort()
            raise
        if connection.is_open:
            self._keep(place, connection)
        return answer

    def _take(self, place: Place) -> _Connection | None:
        """Return the connection that has been idle for the shortest time."""
        idle = self._idle.get(place, [])
        while idle:
            connection = idle.pop()
            if connection.is_open:
                return connection
        return None

    def _keep(self, place: Place, connection: _Connection) -> None:
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.setdefault(place, []).append(connection)
        if self._sweeping is None:
            self._sweeping = loop.call_later(self._kept_seconds, self._sweep)

    def _sweep(self) -> None:
        """Close what has been idle for too long; come again as long as there is anything."""
        loop = asyncio.get_running_loop()
        oldest = loop.time() - self._kept_seconds
        for connection in [each for several in self._idle.values() for each in several]:
            if connection.idle_since <= oldest:
                connection.close()
        kept = {place: [c for c in idle if c.is_open] for place, idle in self._idle.items()}
        self._idle = {place: idle for place, idle in kept.items() if idle}
        again = bool(self._idle)
        self._sweeping = loop.call_later(self._kept_seconds / 2, self._sweep) if again else None


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a URL says: where, and the head of a request, up to the length of its body."""

    secure: bool
    host: str
    port: int
    head: bytes


@lru_cache(maxsize=_REMEMBERED)
def _asked_by(url: str) -> _Asked:
    parsed = yarl.URL(url)
    lines = (
        f"POST {parsed.raw_path_qs} HTTP/1.1",
        f"Host: {parsed.host_port_subcomponent}",
        "Accept: application/json",
        "Content-Type: application/json",
        "Content-Length: ",
    )
    secure, port = parsed.scheme == "https", parsed.port
    return _Asked(secure, parsed.host or "", port or 0, "\r\n".join(lines).encode())


async def _connect(place: Place) -> _Connection:
    """Connect to the first address that can be reached; raises OSError."""
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    trouble: OSError | None = None
    name = place.name if place.tls else None
    for *_, address in addresses:
        to = str(address[0]), place.port
        try:
            _, made = await loop.create_connection(
                _Connection, *to, ssl=place.tls, server_hostname=name
            )
        except ssl.SSLError:
            raise
        except OSError as error:
            trouble = error
        else:
            return made
    raise trouble or OSError(f"{place.host} has no address")


class _Connection(asyncio.Protocol):
    """A connection on which one request is answered at a time."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._coming = Incoming()
        self._asked: asyncio.Future[Answer] | None = None

    @property
    def is_open(self) -> bool:
        """Whether another request can be made."""
        return self._transport is not None and not self._transport.is_closing()

    async def exchange(self, request: bytes) -> Answer:
        """Send a request and await its answer; raises OSError, MalformedAnswerError."""
        if self._transport is None or self._transport.is_closing():
            raise ClosedError(begun=False)
        self._coming = Incoming()
        self._asked = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._asked
        finally:
            self._asked = None

    def close(self) -> None:
        """Close it; there may be something yet to be sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close it at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._asked is None or self._asked.done():
            self.abort()  # nobody has asked for anything
            return
        try:
            answer = self._coming.feed(data)
        except MalformedAnswerError as error:
            self._asked.set_exception(error)
            return
        if answer is not None:
            self._asked.set_result(answer)
            if not self._coming.keeps:
                self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if not self.gone.done():
            self.gone.set_result(None)
        if self._asked is None or self._asked.done():
            return
        answer = None if error else self._coming.ended()
        if answer is not None:
            self._asked.set_result(answer)
        else:
            self._asked.set_exception(ClosedError(begun=self._coming.begun))
