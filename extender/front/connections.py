"""Connections that may not take more of us than they are allowed.

A connection is in one of five phases, and may stay in each as long as its limit says:

    handshake   since it was accepted                       header time
    idle        since it was opened, or answered last       idle time
    header      since the first byte of a request           header time
    body        since the header was read                   body time
    deciding    since the body was read                     the deadlines' concern

Bytes that trickle in do not prolong a phase. Whoever stays too long is cut off without a word: a
client that reads its answer too slowly counts as idle.

When there are as many connections as may be, the one that has been waiting longest for its client
makes room, if that is a second at least: in less, what it has sent may not have been read. If there
is none, a new one is let in beyond the limit. As many calls may be under way as the limit says, and
others are to be told that there are too many. At twice the limit, whoever waits makes room; if
nobody does, a new connection is cut off.
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
"""Whose client has been silent for less is only cut off if nothing else helps."""


class Phase(Enum):
    """What a connection waits for."""

    HANDSHAKE = "handshake"
    IDLE = "idle"
    HEADER = "header"
    BODY = "body"
    DECIDING = "deciding"


_AWAITS_CLIENT: Final = (Phase.HANDSHAKE, Phase.IDLE, Phase.HEADER)
_CALLING: Final = (Phase.BODY, Phase.DECIDING)
_UNDER_WAY: Final = (Phase.HEADER, Phase.BODY, Phase.DECIDING)


class Visit:
    """How long somebody has been in which phase, and how to cut him off."""

    def __init__(self, transport: asyncio.BaseTransport, phase: Phase, now: float) -> None:
        self.transport = transport
        self.phase = phase
        self.since = now

    def cut(self) -> None:
        """End the connection, whatever waits to be sent."""
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()


class Visits:
    """All connections there are; ``cut`` counts those cut off by phase, ``full`` what for room."""

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
        """Let a connection in, or give None if there is no room at all."""
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
        """Whether as many calls are under way as there may be connections."""
        if len(self._visits) <= self._most:
            return False
        return sum(visit.phase in _CALLING for visit in self._visits) >= self._most

    def end(self, visit: Visit) -> None:
        """Forget a connection that has ended."""
        self._visits.pop(visit, None)
        self._rested.set()

    def enter(self, visit: Visit, phase: Phase) -> None:
        """Note that a connection waits for something else from now on."""
        visit.phase, visit.since = phase, self._clock.monotonic()
        if phase is Phase.IDLE:
            self._rested.set()

    @property
    def idle(self) -> bool:
        """Whether nobody is in the midst of a request."""
        return not any(visit.phase in _UNDER_WAY for visit in self._visits)

    async def finish(self, seconds: float) -> None:
        """Return when nobody is in the midst of a request, or when so much time has passed."""
        with suppress(TimeoutError):
            await within(self._clock, seconds, self._until_idle())

    async def _until_idle(self) -> None:
        while not self.idle:
            self._rested.clear()
            await self._rested.wait()

    def sweep(self) -> None:
        """Cut off whoever has stayed too long in his phase."""
        now = self._clock.monotonic()
        for visit in tuple(self._visits):
            limit = self._seconds.get(visit.phase)
            if limit is not None and now - visit.since > limit:
                self.cut[visit.phase] += 1
                self._end(visit)

    async def keep_swept(self) -> None:
        """Sweep from time to time, until cancelled."""
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
    """One client's requests, one after another."""

    __slots__ = ("_visit", "_visits")

    def __init__(self, server: web.Server, visits: Visits, **options: Any) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **options)
        self._visits = visits
        self._visit: Visit | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, if there is room."""
        visit = self._visits.begin(transport, Phase.IDLE)
        if visit is not None:
            self.go_on(visit, transport)

    def go_on(self, visit: Visit, transport: asyncio.BaseTransport) -> None:
        """Begin to serve on a connection that was let in before."""
        self._visit = visit
        visit.transport = transport
        self._enter(Phase.IDLE)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End, if it has begun."""
        if self._visit is not None:
            self._visits.end(self._visit)
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what has arrived."""
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
        """Refuse what is no HTTP in one line, here and in the log, and end the connection.

        What came is not repeated: it may hold a secret. Raises ConnectionError if an answer has
        begun already.
        """
        problem = _first_words(message or HTTPStatus(status).phrase)
        fault = exc if message is None else None  # nobody said why, so it is ours
        structlog.get_logger().warning("refused", status=status, problem=problem, exc_info=fault)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun already")
        response = web.Response(status=status, text=f"reprieve: {problem}\n")
        response.force_close()
        return response

    @property
    def is_too_many(self) -> bool:
        """Whether a call that begins now is to be told that there are too many."""
        return self._visits.too_many_calls

    def reads_body(self) -> None:
        """Note that the header is complete."""
        self._enter(Phase.BODY)

    def decides(self) -> None:
        """Note that the body is complete."""
        self._enter(Phase.DECIDING)

    def answers(self) -> None:
        """Note that the answer is about to be sent."""
        self._enter(Phase.IDLE)

    def _enter(self, phase: Phase) -> None:
        if self._visit is not None:
            self._visits.enter(self._visit, phase)


def _first_words(message: str) -> str:
    """Return what the parser says without the bytes that it says it of."""
    return message.partition("\n")[0].partition(": b")[0].rstrip(": ")
