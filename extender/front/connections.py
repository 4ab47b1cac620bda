"""Limits on connections: their number, and the time in each phase.

A connection is in one of five phases, each with a time limit:

    phase       begins when                                 limit
    handshake   the connection is accepted                  headerSeconds
    idle        it is opened, or a response is sent         idleSeconds
    header      the first byte of a request arrives         headerSeconds
    body        the header is read                          bodySeconds
    deciding    the body is read                            none; the verb's deadline applies

Further bytes do not prolong a phase. A connection that exceeds its limit is aborted without a
response. A client that reads its response too slowly counts as idle.

At the limit of connections, the connection that has waited longest for its client is closed, if it
has waited for at least a second: after less, its data may not have been read yet. If there is none,
the new connection is accepted beyond the limit. Calls in progress are limited to the same number;
further ones are answered with an error. At twice the limit, any waiting connection is closed; if
there is none, the new connection is aborted.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from enum import Enum
from http import HTTPStatus
from typing import Any, Final

import structlog
from aiohttp import web

from extender.config import Limits
from extender.kube.clock import Clock, within

SWEEP_SECONDS: Final = 1.0
_WAITING_SECONDS: Final = 1.0
"""A client that is silent for less is only disconnected at twice the limit; seconds."""


class Phase(Enum):
    """The phase of a connection."""

    HANDSHAKE = "handshake"
    IDLE = "idle"
    HEADER = "header"
    BODY = "body"
    DECIDING = "deciding"


_AWAITS_CLIENT: Final = (Phase.HANDSHAKE, Phase.IDLE, Phase.HEADER)
_CALLING: Final = (Phase.BODY, Phase.DECIDING)
_UNDER_WAY: Final = (Phase.HEADER, Phase.BODY, Phase.DECIDING)


class Visit:
    """The transport of a connection, its phase, and since when."""

    def __init__(self, transport: asyncio.BaseTransport, phase: Phase, now: float) -> None:
        self.transport = transport
        self.phase = phase
        self.since = now

    def cut(self) -> None:
        """Abort the connection, with unsent data."""
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()


class Visits:
    """The open connections.

    ``aborted`` counts connections aborted for a time limit, by phase; ``at_limit`` those that
    arrived at the limit of connections.
    """

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._clock = clock
        self._most = limits.connections
        self._seconds = {
            Phase.HANDSHAKE: limits.header_seconds,
            Phase.IDLE: limits.idle_seconds,
            Phase.HEADER: limits.header_seconds,
            Phase.BODY: limits.body_seconds,
        }
        self._visits: dict[Visit, None] = {}
        self._rested = asyncio.Event()
        self.cut = dict.fromkeys(Phase, 0)
        self.full = 0

    def __len__(self) -> int:
        return len(self._visits)

    def begin(self, transport: asyncio.BaseTransport, phase: Phase) -> Visit | None:
        """Register a connection; abort it and return None if there are too many."""
        visit = Visit(transport, phase, self._clock.monotonic())
        if len(self._visits) >= self._most:
            self.full += 1
            self._make_room(visit.since)
        if len(self._visits) >= 2 * self._most:
            visit.cut()
            return None
        self._visits[visit] = None
        return visit

    @property
    def too_many_calls(self) -> bool:
        """Whether the number of calls in progress has reached the limit of connections."""
        if len(self._visits) <= self._most:
            return False
        return sum(visit.phase in _CALLING for visit in self._visits) >= self._most

    def end(self, visit: Visit) -> None:
        """Remove a connection that has ended."""
        self._visits.pop(visit, None)
        self._rested.set()

    def enter(self, visit: Visit, phase: Phase) -> None:
        """Record that a connection enters a phase now."""
        visit.phase, visit.since = phase, self._clock.monotonic()
        if phase is Phase.IDLE:
            self._rested.set()

    @property
    def idle(self) -> bool:
        """Whether no request is in progress."""
        return not any(visit.phase in _UNDER_WAY for visit in self._visits)

    async def finish(self, seconds: float) -> None:
        """Return when no request is in progress, or after ``seconds``."""
        with suppress(TimeoutError):
            await within(self._clock, seconds, self._until_idle())

    async def _until_idle(self) -> None:
        while not self.idle:
            self._rested.clear()
            await self._rested.wait()

    def sweep(self) -> None:
        """Abort the connections that exceed the time limit of their phase."""
        now = self._clock.monotonic()
        for visit in tuple(self._visits):
            limit = self._seconds.get(visit.phase)
            if limit is not None and now - visit.since > limit:
                self.cut[visit.phase] += 1
                self._end(visit)

    async def keep_swept(self) -> None:
        """Sweep once a second, until cancelled."""
        while True:
            await self._clock.sleep(SWEEP_SECONDS)
            self.sweep()

    def _make_room(self, now: float) -> None:
        waiting = [visit for visit in self._visits if visit.phase in _AWAITS_CLIENT]
        if not waiting:
            return
        longest = min(waiting, key=lambda visit: visit.since)
        if now - longest.since >= _WAITING_SECONDS or len(self._visits) >= 2 * self._most:
            self._end(longest)

    def _end(self, visit: Visit) -> None:
        self.end(visit)
        visit.cut()


class Connection(web.RequestHandler):
    """The protocol of one connection: its requests, one after another."""

    __slots__ = ("_visit", "_visits")

    def __init__(self, server: web.Server, visits: Visits, **options: Any) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **options)
        self._visits = visits
        self._visit: Visit | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve, if the number of connections permits it."""
        visit = self._visits.begin(transport, Phase.IDLE)
        if visit is not None:
            self.go_on(visit, transport)

    def go_on(self, visit: Visit, transport: asyncio.BaseTransport) -> None:
        """Begin to serve a connection that is registered already."""
        self._visit = visit
        visit.transport = transport
        self._enter(Phase.IDLE)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End, if serving has begun."""
        if self._visit is not None:
            self._visits.end(self._visit)
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received data."""
        visit = self._visit
        if visit is None:
            return
        if visit.phase is Phase.IDLE:
            self._visits.enter(visit, Phase.HEADER)
        super().data_received(data)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return an error response of one line for invalid HTTP; log it and close the connection.

        The received data is not repeated, since it may contain a secret. Raise ConnectionError if
        a response has begun already.
        """
        problem = _first_words(message or HTTPStatus(status).phrase)
        fault = exc if message is None else None  # without a message it is an internal error
        structlog.get_logger().warning("refused", status=status, problem=problem, exc_info=fault)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun already")
        response = web.Response(status=status, text=f"reprieve: {problem}\n")
        response.force_close()
        return response

    @property
    def is_too_many(self) -> bool:
        """Whether a call that begins now must be refused because there are too many."""
        return self._visits.too_many_calls

    def reads_body(self) -> None:
        """Record that the header is complete."""
        self._enter(Phase.BODY)

    def decides(self) -> None:
        """Record that the body is complete."""
        self._enter(Phase.DECIDING)

    def answers(self) -> None:
        """Record that the response is about to be sent."""
        self._enter(Phase.IDLE)

    def _enter(self, phase: Phase) -> None:
        if self._visit is not None:
            self._visits.enter(self._visit, phase)


def _first_words(message: str) -> str:
    """Return the message of the parser without the received bytes."""
    return message.partition("\n")[0].partition(": b")[0].rstrip(": ")
