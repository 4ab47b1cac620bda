"""Fault delivery between a client and the API, with and without sockets.

A :class:`FaultDelivery` passes each request to the API, returns the response, and applies the
faults of the plan (:mod:`fakeapi.apiserver.testing.fault_injection`) to both. The result is a
:class:`DeliveredResponse`: the caller owns the connection and ends it (a reset on a socket, a
TransportError without one).

A :class:`FaultyWatch` wraps a watch. It delays lines, never reorders and never drops them: lines
that are held back when the watch ends are sent when the client resumes the watch.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final, TypeAlias, TypeVar

from extender.kube.rest.clock import Clock
from fakeapi.apiserver.endpoints import Request, Response, Watch
from fakeapi.apiserver.testing.fault_injection import FaultInjector
from fakeapi.apiserver.testing.fault_injection.effects import (
    WATCHING,
    Compaction,
    Cut,
    Drop,
    Duplication,
    Effect,
    Expiry,
    Lag,
    Latency,
    Refusal,
    Silence,
    Staleness,
    When,
)
from fakeapi.apiserver.testing.fault_injection.injector import as_of
from fakeapi.apiserver.wire.request_options import read_flag

MAX_BUFFERED_LINES: Final = 10_000
"""The maximum number of lines that a faulty watch buffers; later ones stay in the history."""

E = TypeVar("E")
HandleRequest = Callable[[Request], Awaitable[Response | Watch]]


class FaultyWatch:
    """A watch to which ``effects`` are applied.

    Once it has ``ended``, ``ending`` is how to end the connection: reset it (``reset``), close it
    in the middle of the response (``abrupt``), or end the response normally ("" and ``clean``).
    """

    def __init__(self, watch: Watch, effects: Sequence[Effect], clock: Clock) -> None:
        self.content_type = watch.content_type
        self.bookmarks = watch.bookmarks
        self.timeout_seconds = watch.timeout_seconds
        self.ending = ""
        self._watch = watch
        self._clock = clock
        self._lag = sum(each.seconds for each in effects if isinstance(each, Lag))
        self._copies = 2 if _first(effects, Duplication) else 1
        self._silence = _first(effects, Silence)
        self._silent_until: float | None = None
        self._termination = _first(effects, Drop) or _first(effects, Cut) or _first(effects, Expiry)
        self._buffered: deque[tuple[float, bytes]] = deque()
        self._sent = 0
        self._drained = False
        self._terminated = False
        self._wake: Callable[[], None] = lambda: None
        self._alarm: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        """Whether no more lines follow."""
        return self._terminated or (self._watch.ended and not self._buffered)

    @property
    def breaks(self) -> bool:
        """Whether the connection must be broken at the end."""
        return self.ending in ("reset", "abrupt")

    def read(self, limit: int) -> Sequence[bytes]:
        """Return the next lines, about ``limit`` at most; the last may be truncated."""
        self._drained = False
        if self._terminated or self._is_silent():
            return []
        while not (self._drained or self._watch.ended) and len(self._buffered) < MAX_BUFFERED_LINES:
            lines = self._watch.read(limit)
            self._buffer(lines)
            self._drained = not lines
        return self._take(limit)

    def due_bookmark(self) -> Sequence[bytes]:
        """Return the lines for a due bookmark; none while events are left, so order is kept."""
        if self._terminated or not self._drained:
            return []
        for line in self._watch.due_bookmark():
            self._buffer([line] * self._copies)
        return self._take(self._copies)

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call ``wake`` when lines may be available; the result cancels the registration."""
        self._wake = wake
        cancel_listening = self._watch.listen(wake)

        def cancel() -> None:
            cancel_listening()
            if self._alarm is not None:
                self._alarm.cancel()

        return cancel

    def _buffer(self, lines: Iterable[bytes]) -> None:
        release = self._clock.monotonic() + self._lag
        self._buffered.extend((release, line) for line in lines)

    def _is_silent(self) -> bool:
        silence, now = self._silence, self._clock.monotonic()
        if silence is None or self._sent < silence.after_frames:
            return False
        if self._silent_until is None:
            self._silent_until = now + (inf if silence.seconds is None else silence.seconds)
        if now < self._silent_until:
            self._wake_at(self._silent_until)
            return True
        return False

    def _take(self, limit: int) -> Sequence[bytes]:
        lines = self._apply_termination(self._released(limit))
        self._sent += len(lines)
        return lines

    def _released(self, limit: int) -> list[bytes]:
        if self._silence is not None and self._silent_until is None:
            limit = min(limit, self._silence.after_frames - self._sent)
        now = self._clock.monotonic()
        lines: list[bytes] = []
        while self._buffered and len(lines) < limit and self._buffered[0][0] <= now:
            lines.append(self._buffered.popleft()[1])
        if self._buffered and not lines:
            self._wake_at(self._buffered[0][0])
        return lines

    def _apply_termination(self, lines: list[bytes]) -> list[bytes]:
        """Apply the effect that ends the watch once its number of frames is reached."""
        effect = self._termination
        if effect is None:
            return lines
        whole = effect.after_frames - self._sent
        if isinstance(effect, Cut):
            if len(lines) <= whole:
                return lines
            self._terminate(effect.end)
            return [*lines[:whole], first_half(lines[whole])]
        if len(lines) < whole:
            return lines
        self._terminate("reset" if isinstance(effect, Drop) else "")
        return lines[:whole] + ([self._watch.expire()] if isinstance(effect, Expiry) else [])

    def _terminate(self, ending: str) -> None:
        self._terminated, self.ending = True, ending

    def _wake_at(self, due: float) -> None:
        if due < inf and (self._alarm is None or self._alarm.done()):
            self._alarm = asyncio.create_task(self._wake_later(due))

    async def _wake_later(self, due: float) -> None:
        await self._clock.sleep(due - self._clock.monotonic())
        self._wake()


AnyWatch: TypeAlias = Watch | FaultyWatch


@dataclass(frozen=True, slots=True)
class DeliveredResponse:
    """The result of a request: ``response``, or None if the connection must be reset.

    ``breaks``: the connection must end in the middle of the response. ``status`` is the status code
    of the API (0 if the request did not reach it), regardless of what the client receives.
    ``fault`` describes the injected faults.
    """

    response: Response | AnyWatch | None
    status: int
    fault: str = ""
    breaks: bool = False


class FaultDelivery:
    """Passes requests to an API and applies faults; without ``faults`` it only passes them."""

    def __init__(self, faults: FaultInjector | None, clock: Clock) -> None:
        self._faults = faults
        self._clock = clock

    async def deliver(self, request: Request, act: HandleRequest) -> DeliveredResponse:
        """Handle a request with ``act`` and apply the faults that match it."""
        effects = self._faults.effects_on(request) if self._faults else ()
        if not self._faults or not effects:
            answer = await act(request)
            return DeliveredResponse(answer, answer.status if isinstance(answer, Response) else 200)
        outcome = await self._deliver_with_faults(self._faults, request, act, effects)
        return replace(outcome, fault=", ".join(map(str, effects)))

    async def _deliver_with_faults(
        self, faults: FaultInjector, request: Request, act: HandleRequest, effects: Sequence[Effect]
    ) -> DeliveredResponse:
        await self._wait(effects, "before")
        refusal, drop = _first(effects, Refusal), _first(effects, Drop)
        if refusal is not None:
            return DeliveredResponse(refusal.response(), refusal.code)
        if drop is not None and drop.when == "before":
            return DeliveredResponse(None, 0)
        if _first(effects, Compaction):
            faults.compact()
        answer = await _handle(faults, request, act, _first(effects, Staleness))
        await self._wait(effects, "after")
        if isinstance(answer, Watch):
            return DeliveredResponse(_with_faults(answer, effects, self._clock), 200)
        return _with_termination(answer, drop, _first(effects, Cut))

    async def _wait(self, effects: Sequence[Effect], when: When) -> None:
        for each in effects:
            if isinstance(each, Latency) and each.when == when:
                await self._clock.sleep(each.most)


async def _handle(
    faults: FaultInjector, request: Request, act: HandleRequest, staleness: Staleness | None
) -> Response | Watch:
    if staleness is None:
        return await act(request)
    version = faults.version_behind(request, staleness.behind)
    if not read_flag(request.query, "watch"):
        return await act(as_of(request, version))
    answer = await act(request)
    if isinstance(answer, Watch):
        answer.start_behind(version)
    return answer


def _with_termination(answer: Response, drop: Drop | None, cut: Cut | None) -> DeliveredResponse:
    if drop is not None:
        return DeliveredResponse(None, answer.status)
    if cut is not None and cut.end == "clean":
        return DeliveredResponse(_cut_off(answer), answer.status)
    return DeliveredResponse(answer, answer.status, breaks=cut is not None)


def _cut_off(answer: Response) -> Response:
    whole = answer.joined
    return replace(whole, body=first_half(whole.body))


def first_half(whole: bytes) -> bytes:
    """Return the first half, rounded down."""
    return whole[: len(whole) // 2]


def _with_faults(watch: Watch, effects: Sequence[Effect], clock: Clock) -> AnyWatch:
    has_watch_faults = any(isinstance(each, (*WATCHING, Drop, Cut)) for each in effects)
    return FaultyWatch(watch, effects, clock) if has_watch_faults else watch


def _first(effects: Iterable[Effect], kind: type[E]) -> E | None:
    return next((each for each in effects if isinstance(each, kind)), None)
