"""Leader election on a Lease: of several candidates one works, and if it falls silent another does.

Who holds the Lease renews it every few seconds. A candidate that has seen it unchanged for as long
as it counts takes it over; an optimistic write decides between two. The rules are client-go's
(tools/leaderelection/leaderelection.go), with its numbers. Guarantees:

- Nobody's wall clock matters. A candidate counts from when it saw the Lease change, on its own
  monotonic clock; so clocks may differ and jump as they like. Only their rates must be alike: up to
  ``lease_seconds / renew_deadline`` (1.5) between the fastest and the slowest.
- Two never believe at once that they lead. A leader believes so for ``renew_deadline`` seconds from
  when it sent its last successful write; others wait ``lease_seconds`` from when they saw that
  write, which is later. What the server does with writes whose answers are lost changes nothing.
- One always leads, a few seconds after the server can be reached: refusals, lost connections and
  answers that do not come are survived by trying again.
- Work is cancelled when its leader is none any more, and has ended before the Lease is given back;
  it is given back at once when the work has ended or the candidate is cancelled.

client-go's leader believes longer: from when its answer came, plus a pause, plus the deadline,
which with slow answers is longer than others wait. It also gives back a Lease without looking
whose it is. Both are put right here.

What this does not give is fencing. Between a look at :attr:`LeaderElector.leading` and the arrival
of a write, time passes: a process that is stopped in between (a paused machine, whose monotonic
clock may stand still as well), or a request that dawdles in the network, writes when another leads
already. The server does not ask whether a writer leads. So what leaders write must be safe in
itself: with a resourceVersion or a UID that it is meant for, as our controllers' writes are.
Somebody who deletes the Lease or empties it by hand lets a second leader in for a few seconds.

Why not kubernetes_asyncio's: it takes no clock and counts by the wall clock (a jump of a minute
forward makes a candidate take over at once); any error that is not an ApiException, a refused
connection say, ends its loop and leaves the work running, as being cancelled does; a request that
hangs keeps the leader leading beyond its lease; nothing is given back. Each was tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import structlog

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.clock import Clock, within
from extender.kube.events import EventRecorder
from extender.kube.lease import LeaseLock, LeaseSpec, micro_time
from extender.kube.transport import TransportError

JITTER: Final = 1.2

_WORTH_WAITING_SECONDS: Final = 0.01


class LeadershipLostError(Exception):
    """The Lease could not be renewed in time, or is another's; the work has been cancelled."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a Lease counts, and how hard its holder tries to keep it, in seconds.

    Raises ValueError if the holder would not give up in time, or could not try twice.
    """

    lease_seconds: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.renew_deadline:
            raise ValueError(f"lease_seconds must be more than renew_deadline: {self}")
        if not self.renew_deadline > JITTER * self.retry_period > 0:
            raise ValueError(f"renew_deadline must be more than {JITTER} * retry_period: {self}")

    @property
    def attempt_seconds(self) -> float:
        """How long an attempt may take; the holder has time for a second one."""
        return self.renew_deadline / 2


class LeaderElector:
    """One candidate for a Lease. Its ``identity`` must be nobody else's.

    ``recorder`` tells people, in Events about the Lease, when it begins and ceases to lead.
    """

    def __init__(
        self,
        lock: LeaseLock,
        identity: str,
        clock: Clock,
        rng: Random,
        terms: Terms | None = None,
        recorder: EventRecorder | None = None,
        log: Any = None,
    ) -> None:
        self.identity = identity
        self._lock = lock
        self._recorder = recorder
        self._clock = clock
        self._rng = rng
        self._terms = terms or Terms()
        self._log = (log or structlog.get_logger()).bind(lease=str(lock), identity=identity)
        self._seen = LeaseSpec()
        self._seen_at = 0.0
        self._leads_until = -1.0

    @property
    def leading(self) -> bool:
        """Whether this candidate may work now."""
        return self._clock.monotonic() < self._leads_until

    @property
    def holder(self) -> str:
        """Who held the Lease when it was last seen; "" if nobody did."""
        return self._seen.holder

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait to be elected, then run ``work`` while this candidate leads.

        Returns when the work has ended, and raises what it raises; raises LeadershipLostError if
        the leadership ended first. It may be run again.
        """
        try:
            await self._acquire()
        except asyncio.CancelledError:
            await self._stand_back()
            raise
        self._log.info("leader_elected")
        self._announce("became leader")
        renewing = asyncio.create_task(self._renew())
        working = asyncio.create_task(work())
        try:
            await asyncio.wait((renewing, working), return_when=asyncio.FIRST_COMPLETED)
            lost = not working.done()
        finally:
            await self._step_down(renewing, working)
        if lost:
            self._log.warning("leader_lost", holder=self.holder)
            raise LeadershipLostError(f"{self.identity} does not lead by {self._lock} any more")

    async def _acquire(self) -> None:
        while not await self._attempt(self._terms.attempt_seconds):
            pause = self._terms.retry_period * (1 + JITTER * self._rng.random())
            await self._clock.sleep(pause)

    async def _renew(self) -> None:
        """Renew the Lease again and again, until the time has run out."""
        now = began = self._clock.monotonic()
        while (left := self._leads_until - now) > _WORTH_WAITING_SECONDS:
            pause = min(began + self._terms.retry_period - now, left)
            if pause > _WORTH_WAITING_SECONDS:
                await self._clock.sleep(pause)
            else:
                began = now
                await self._attempt(min(self._terms.attempt_seconds, left))
            now = self._clock.monotonic()

    async def _attempt(self, seconds: float) -> bool:
        """Acquire or renew, if that can be done now, and within a time."""
        try:
            return await within(self._clock, seconds, self._acquire_or_renew())
        except (ApiError, MalformedError, TransportError, TimeoutError) as trouble:
            self._log.debug("leader_attempt_failed", error=str(trouble))
            return False

    async def _acquire_or_renew(self) -> bool:
        if self.leading:
            try:
                await self._claim(self._lock.update, self._term_after(self._seen))
            except (ApiError, MalformedError, TransportError) as trouble:
                self._log.debug("leader_looks_again", error=str(trouble))
            else:
                return True
        found = await self._lock.read()
        if found is None:
            await self._claim(self._lock.create, self._term(None, 0))
            return True
        self._see(found)
        if found.holder not in ("", self.identity) and self._counts():
            return False
        await self._claim(self._lock.update, self._term_after(found))
        return True

    async def _claim(self, write: Callable[[LeaseSpec], Awaitable[None]], spec: LeaseSpec) -> None:
        sent = self._clock.monotonic()
        await write(spec)
        self._see(spec)
        self._leads_until = sent + self._terms.renew_deadline

    def _see(self, spec: LeaseSpec) -> None:
        """Note what the Lease says, and when it began to say so as far as can be seen from here."""
        if spec.holder != self._seen.holder:
            self._log.info("leader_seen", holder=spec.holder)
        if spec != self._seen:
            self._seen, self._seen_at = spec, self._clock.monotonic()
        if spec.holder != self.identity:
            self._leads_until = -1.0

    def _counts(self) -> bool:
        """Whether the holder that was seen last may still lead."""
        return self._clock.monotonic() < self._seen_at + self._seen.seconds

    def _term_after(self, spec: LeaseSpec) -> LeaseSpec:
        """Return what to write over a spec, as a renewal or as a change of the holder."""
        if spec.holder == self.identity:
            return self._term(spec.acquire_time, spec.transitions)
        return self._term(None, spec.transitions + 1)

    def _term(self, acquired: str | None, transitions: int) -> LeaseSpec:
        now = micro_time(self._clock.now_ns())
        seconds = self._terms.lease_seconds
        return LeaseSpec(self.identity, seconds, acquired or now, now, transitions)

    async def _step_down(self, renewing: asyncio.Task[None], working: asyncio.Task[None]) -> None:
        """End the work while the Lease is still renewed, if it can be; then give it back.

        Raises what the work has raised. Who is cancelled here does not wait for the work, and
        leaves the Lease to run out.
        """
        try:
            working.cancel()
            await asyncio.wait((working,))
        finally:
            renewing.cancel()
            self._leads_until = -1.0
        await asyncio.wait((renewing,))
        self._announce("stopped leading")
        await self._stand_back()
        for task in (working, renewing):
            if not task.cancelled():
                task.result()

    def _announce(self, what: str) -> None:
        if self._recorder is not None:
            told = f"{self.identity} {what}"
            self._recorder.normal(self._lock.reference, "LeaderElection", told)

    async def _stand_back(self) -> None:
        self._leads_until = -1.0
        if self.holder != self.identity:
            return
        try:
            await within(self._clock, self._terms.attempt_seconds, self._give_back())
        except (ApiError, MalformedError, TransportError, TimeoutError) as trouble:
            self._log.warning("leader_not_released", error=str(trouble))

    async def _give_back(self) -> None:
        while (found := await self._lock.read()) is not None and found.holder == self.identity:
            now = micro_time(self._clock.now_ns())
            try:
                await self._lock.update(LeaseSpec("", 1, now, now, found.transitions))
            except ApiError as error:
                if error.status != 409:  # a renewal that was given up has come through after all
                    raise
            else:
                self._log.info("leader_released")
                return
