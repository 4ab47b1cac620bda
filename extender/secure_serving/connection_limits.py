"""Limits on connections: their number, the time in each phase, and the bytes of all requests.

A connection is in one of six phases, each with a time limit:

    phase       begins when                                 limit
    handshake   the connection is accepted                  headerSeconds
    idle        it is opened, or a response is sent         idleSeconds
    header      the first byte of a request arrives         headerSeconds
    body        the header is read                          bodySeconds
    deciding    the body is read                            none; the verb's deadline applies
    refused     it has sent too much for the budget         2 s

Further bytes do not prolong a phase. A connection that exceeds its limit is aborted without a
response. A client that reads its response too slowly counts as idle.

At the limit of connections, the connection that has waited longest for its client is closed, if it
has waited for at least a second: after less, its data may not have been read yet. If there is none,
the new connection is accepted beyond the limit. Calls in progress are limited to the same number;
further ones are answered with an error. At twice the limit, any waiting connection is closed; if
there is none, the new connection is aborted.

The bytes of a request count against one budget from their arrival until its response is sent.
Beyond the budget, the connection that has sent most of an unfinished request gets 503, and its
bytes are released. So a few large requests do not stop small ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Any, Final

from aiohttp import web

from extender.config.component_config import ConnectionLimits
from extender.kube.rest.clock import Clock, within
from extender.secure_serving.http_errors import StrictRequestHandler

SWEEP_SECONDS: Final = 1.0
_REFUSED_SECONDS: Final = 2.0
"""How long the rest of a refused request is discarded, so that the client reads the response."""
_MIN_WAIT_SECONDS: Final = 1.0
"""A client that is silent for less is only disconnected at twice the limit; seconds."""


class Phase(Enum):
    """The phase of a connection."""

    HANDSHAKE = "handshake"
    IDLE = "idle"
    HEADER = "header"
    BODY = "body"
    DECIDING = "deciding"
    REFUSED = "refused"


_AWAITS_CLIENT: Final = (Phase.HANDSHAKE, Phase.IDLE, Phase.HEADER, Phase.REFUSED)
_UNFINISHED: Final = (Phase.HEADER, Phase.BODY)
_CALLING: Final = (Phase.BODY, Phase.DECIDING)
_UNDER_WAY: Final = (Phase.HEADER, Phase.BODY, Phase.DECIDING)


OVERLOADED: Final = "overloaded: there are too many bytes of requests"
_REFUSAL: Final = (
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    f"Content-Type: text/plain\r\nContent-Length: {len(OVERLOADED) + 11}\r\n\r\n"
    f"reprieve: {OVERLOADED}\n"
).encode()


class OpenConnection:
    """The transport of a connection, its phase, and since when.

    ``received`` is the size of the request in progress, in bytes, and ``pipelined`` that of what
    followed its body. ``refuse`` ends the request in progress.
    """

    def __init__(self, transport: asyncio.BaseTransport, phase: Phase, now: float) -> None:
        self.transport = transport
        self.phase = phase
        self.since = now
        self.received = 0
        self.pipelined = 0
        self.refuse: Callable[[], None] = self.abort

    def abort(self) -> None:
        """Abort the connection, with unsent data."""
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()


class ConnectionRegistry:
    """The open connections.

    ``aborted`` counts connections aborted for a time limit, by phase; ``at_limit`` those that
    arrived at the limit of connections; ``refused`` the requests refused for the budget of bytes.
    ``in_flight`` is the size of all unanswered requests, in bytes.
    """

    def __init__(self, limits: ConnectionLimits, clock: Clock) -> None:
        self._clock = clock
        self._limit = limits.connections
        self._seconds = {
            Phase.HANDSHAKE: limits.header_seconds,
            Phase.IDLE: limits.idle_seconds,
            Phase.HEADER: limits.header_seconds,
            Phase.BODY: limits.body_seconds,
            Phase.REFUSED: _REFUSED_SECONDS,
        }
        self._budget = limits.in_flight_mib * 2**20
        self._connections: dict[OpenConnection, None] = {}
        self._became_idle = asyncio.Event()
        self.aborted = dict.fromkeys(Phase, 0)
        self.at_limit = 0
        self.in_flight = 0
        self.refused = 0

    def __len__(self) -> int:
        return len(self._connections)

    def register(self, transport: asyncio.BaseTransport, phase: Phase) -> OpenConnection | None:
        """Register a connection; abort it and return None if there are too many."""
        connection = OpenConnection(transport, phase, self._clock.monotonic())
        if len(self._connections) >= self._limit:
            self.at_limit += 1
            self._close_waiting(connection.since)
        if len(self._connections) >= 2 * self._limit:
            connection.abort()
            return None
        self._connections[connection] = None
        return connection

    @property
    def too_many_calls(self) -> bool:
        """Whether the number of calls in progress has reached the limit of connections."""
        if len(self._connections) <= self._limit:
            return False
        return sum(connection.phase in _CALLING for connection in self._connections) >= self._limit

    def remove(self, connection: OpenConnection) -> None:
        """Remove a connection that has ended."""
        self._connections.pop(connection, None)
        self._forget_received(connection)
        self._became_idle.set()

    def enter_phase(self, connection: OpenConnection, phase: Phase) -> None:
        """Record that a connection enters a phase now."""
        connection.phase, connection.since = phase, self._clock.monotonic()
        if phase is Phase.IDLE:
            self.in_flight -= connection.received
            connection.received, connection.pipelined = connection.pipelined, 0
            self._became_idle.set()

    def count_received(self, connection: OpenConnection, size: int) -> None:
        """Count ``size`` bytes; beyond the budget, refuse the largest unfinished requests."""
        if connection not in self._connections:
            return
        if connection.phase is Phase.DECIDING:
            connection.pipelined += size
        else:
            connection.received += size
        self.in_flight += size
        while self.in_flight > self._budget:
            unfinished = [each for each in self._connections if each.phase in _UNFINISHED]
            self._refuse(max(unfinished, key=lambda each: each.received, default=connection))

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress."""
        return not any(connection.phase in _UNDER_WAY for connection in self._connections)

    async def wait_idle(self, seconds: float) -> None:
        """Return when no request is in progress, or after ``seconds``."""
        with suppress(TimeoutError):
            await within(self._clock, seconds, self._until_idle())

    async def _until_idle(self) -> None:
        while not self.is_idle:
            self._became_idle.clear()
            await self._became_idle.wait()

    def sweep(self) -> None:
        """Abort the connections that exceed the time limit of their phase."""
        now = self._clock.monotonic()
        for connection in tuple(self._connections):
            limit = self._seconds.get(connection.phase)
            if limit is not None and now - connection.since > limit:
                self.aborted[connection.phase] += 1
                self._abort(connection)

    async def run_sweeper(self) -> None:
        """Sweep once a second, until cancelled."""
        while True:
            await self._clock.sleep(SWEEP_SECONDS)
            self.sweep()

    def _close_waiting(self, now: float) -> None:
        waiting = [each for each in self._connections if each.phase in _AWAITS_CLIENT]
        if not waiting:
            return
        longest = min(waiting, key=lambda connection: connection.since)
        if now - longest.since >= _MIN_WAIT_SECONDS or len(self._connections) >= 2 * self._limit:
            self._abort(longest)

    def _refuse(self, connection: OpenConnection) -> None:
        self.refused += 1
        self._forget_received(connection)
        self.enter_phase(connection, Phase.REFUSED)
        connection.refuse()

    def _forget_received(self, connection: OpenConnection) -> None:
        self.in_flight -= connection.received + connection.pipelined
        connection.received = connection.pipelined = 0

    def _abort(self, connection: OpenConnection) -> None:
        self.remove(connection)
        connection.abort()


class ConnectionProtocol(StrictRequestHandler):
    """The protocol of one connection: its requests, one after another."""

    __slots__ = ("_open_connection", "_registry")

    def __init__(self, server: web.Server, registry: ConnectionRegistry, **options: Any) -> None:
        super().__init__(server, **options)
        self._registry = registry
        self._open_connection: OpenConnection | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve, if the number of connections permits it."""
        connection = self._registry.register(transport, Phase.IDLE)
        if connection is not None:
            self.begin_serving(connection, transport)

    def begin_serving(self, connection: OpenConnection, transport: asyncio.BaseTransport) -> None:
        """Begin to serve a connection that is registered already."""
        self._open_connection = connection
        connection.transport = transport
        connection.refuse = self._refuse
        self._enter(Phase.IDLE)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End, if serving has begun."""
        if self._open_connection is None:
            return
        self._registry.remove(self._open_connection)
        if not self.is_refused:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received data, unless the budget of all requests is exhausted."""
        connection = self._open_connection
        if connection is None or self.is_refused:
            return
        if connection.phase is Phase.IDLE:
            self._registry.enter_phase(connection, Phase.HEADER)
        self._registry.count_received(connection, len(data))
        if not self.is_refused:
            super().data_received(data)

    @property
    def is_refused(self) -> bool:
        """Whether the connection was refused because of the budget of all requests."""
        return self._open_connection is not None and self._open_connection.phase is Phase.REFUSED

    def _refuse(self) -> None:
        """Send the refusal, and release what was received; the sweeper ends the connection."""
        # Without a transport, the base class does not close it before the client has the refusal.
        transport, self.transport = self.transport, None
        if isinstance(transport, asyncio.Transport):
            transport.write(_REFUSAL)
            transport.resume_reading()
        super().connection_lost(ConnectionResetError(OVERLOADED))

    @property
    def exceeds_call_limit(self) -> bool:
        """Whether a call that begins now must be refused because there are too many."""
        return self._registry.too_many_calls

    def header_read(self) -> None:
        """Record that the header is complete."""
        self._enter(Phase.BODY)

    def body_read(self) -> None:
        """Record that the body is complete."""
        self._enter(Phase.DECIDING)

    def response_started(self) -> None:
        """Record that the response is about to be sent."""
        self._enter(Phase.IDLE)

    def _enter(self, phase: Phase) -> None:
        if self._open_connection is not None:
            self._registry.enter_phase(self._open_connection, phase)
