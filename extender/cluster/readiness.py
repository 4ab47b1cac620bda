"""Readiness: whether answers are safe now, and the output of ``/readyz``.

An extender is ready when every informer has synced, every watch has received something from the API
server recently, and the process is not shutting down. A watch without changes receives bookmarks,
and is restarted if it receives neither. So a silent watch means that the cache may be outdated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from extender.kube.rest.clock import Clock
from extender.terminal.log_limits import shortened


class InformerState(Protocol):
    """An informer of one kind, as far as readiness reads it."""

    async def run(self) -> None:
        """List and watch until cancelled."""
        ...

    async def wait_settled(self) -> None:
        """Return when the first list has arrived, or when the server refuses the kind."""
        ...

    @property
    def settled(self) -> bool:
        """Whether the first list has arrived, or the server refuses the kind."""
        ...

    @property
    def synced(self) -> bool:
        """Whether the first list has arrived."""
        ...

    @property
    def refusal(self) -> str:
        """How the server refuses the kind, "" if it does not."""
        ...

    @property
    def last_error(self) -> str:
        """The error of the last request or watch, "" if it succeeded."""
        ...

    @property
    def retry_at(self) -> float:
        """When the request that failed is retried, in monotonic seconds of the clock."""
        ...

    @property
    def resource_version(self) -> str:
        """The resource version of the cache, "" before the first list."""
        ...

    @property
    def last_heard(self) -> float:
        """When the server last sent a response or an event, in monotonic seconds of the clock."""
        ...


@dataclass(slots=True)
class Readiness:
    """``informers`` are by kind; each of ``warnings`` returns a warning, "" for none.

    ``of_others`` returns why another process of the extender is not ready. Each call asks whether
    answers are safe, so kinds are not asked again as long as the answer cannot have changed:
    informers stay settled, and the last sign of a server is never earlier than before.
    """

    clock: Clock
    informers: Mapping[str, InformerState] = field(default_factory=dict)
    stale_seconds: float = 180.0
    warnings: list[Callable[[], str]] = field(default_factory=list)
    of_others: Callable[[], str] = str
    stopping: bool = False
    _settled: int = field(default=0, init=False)
    _silent_from: float = field(default=-math.inf, init=False)

    def unsynced_kinds(self) -> list[str]:
        """Return the kinds whose first list has not arrived."""
        if self._settled == len(self.informers):
            return []
        missing = [kind for kind, informer in self.informers.items() if not informer.settled]
        self._settled = len(self.informers) - len(missing)
        return missing

    def silent_kinds(self) -> list[str]:
        """Return the kinds whose watch has been silent for more than ``stale_seconds``."""
        now = self.clock.monotonic()
        if now <= self._silent_from:
            return []
        heard = {kind: each.last_heard for kind, each in self.informers.items() if each.synced}
        self._silent_from = min(heard.values(), default=-math.inf) + self.stale_seconds
        return [kind for kind, at in heard.items() if now > at + self.stale_seconds]

    def silence(self) -> float:
        """Return the seconds since the server was last heard of on any watch."""
        heard = [each.last_heard for each in self.informers.values() if each.synced]
        return max(0.0, self.clock.monotonic() - max(heard)) if heard else 0.0

    def ages(self) -> Mapping[str, float]:
        """Return the seconds since the server was last heard of, by kind."""
        now = self.clock.monotonic()
        synced = ((kind, informer) for kind, informer in self.informers.items() if informer.synced)
        return {kind: max(0.0, now - informer.last_heard) for kind, informer in synced}

    def problem(self) -> str:
        """Return why the extender is not ready, "" if it is."""
        if self.stopping:
            return "shutting down"
        missing, silent = self.unsynced_kinds(), self.silent_kinds()
        if missing:
            return f"waiting for {', '.join(missing)}"
        return f"no recent data for {', '.join(silent)}" if silent else self.of_others()

    def verbose_lines(self) -> Iterator[str]:
        """Yield the lines of ``/readyz?verbose``: the state of each kind, then the warnings."""
        silent, ages = frozenset(self.silent_kinds()), self.ages()
        for kind, informer in self.informers.items():
            state = _describe_state(informer)
            if kind in silent:
                state = f"no data received for {ages[kind]:.0f} s"
            mark = "+" if informer.settled and kind not in silent else "-"
            yield f"[{mark}] {kind} {state}{self._describe_error(informer)}"
        yield from (f"[!] {warning}" for warning in (each() for each in self.warnings) if warning)

    def _describe_error(self, informer: InformerState) -> str:
        """Return the error and the time of the retry; of an excluded kind, its state has both."""
        line = " ".join(informer.last_error.split())
        if not line or _is_excluded(informer):
            return ""
        seconds = max(0.0, informer.retry_at - self.clock.monotonic())
        return f": {shortened(line)}; retry in {seconds:.0f} s"


class ReadinessLog:
    """Logs when readiness changes. A process begins as not ready."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness
        self._ready = False

    def update(self) -> None:
        """Log one line if readiness has changed since the last call."""
        problem = self._readiness.problem()
        if self._ready == (not problem):
            return
        self._ready, log = not problem, structlog.get_logger()
        if not problem:
            log.info("ready")
        elif self._readiness.stopping:
            log.info("not_ready", problem=problem)
        else:
            log.warning("not_ready", problem=problem)


def _is_excluded(informer: InformerState) -> bool:
    return informer.settled and not informer.synced


def _describe_state(informer: InformerState) -> str:
    if _is_excluded(informer):
        return f"excluded: {informer.refusal}: pods that need it are not evaluated"
    return "synced" if informer.synced else "not synced"
