"""Leader election on a Lease: one of several candidates leads; when it fails, another takes over.

The holder renews the Lease every few seconds. A candidate that has observed no change for the
duration of the Lease takes it over; optimistic concurrency decides between two. The rules and
numbers are client-go's (tools/leaderelection/leaderelection.go). Guarantees:

- Wall clocks do not matter. A candidate counts from when it observed a change of the Lease, on its
  own monotonic clock, so clocks may differ and jump. Only their rates must be similar: up to
  ``lease_seconds / renew_deadline`` (1.5) between the fastest and the slowest.
- Never do two candidates consider themselves the leader. A leader does so for ``renew_deadline``
  seconds from when it sent its last successful write; others wait ``lease_seconds`` from when they
  observed that write, which is later. This holds as well for writes whose responses are lost.
- There is always a leader, a few seconds after the server can be reached: error responses, lost
  connections and missing responses are retried.
- Work is cancelled when the leadership is lost, and has ended before the Lease is released. The
  Lease is released at once when the work has ended or the candidate is cancelled.

client-go's leader leads longer: from when its response came, plus a pause, plus the deadline,
which with slow responses is longer than others wait. It also releases a Lease without checking its
holder. Both are corrected here.

There is no fencing. Between a read of :attr:`LeaderElector.is_leader` and the arrival of a write,
time passes: a process that is stopped in between (a paused machine, whose monotonic clock may stop
as well), or a request that is delayed in the network, may write when another candidate already
leads. The server does not check whether a writer leads. So the writes of leaders must be safe by
themselves: with a resourceVersion or a UID as a precondition, as our controllers' writes are. A
user who deletes or empties the Lease by hand permits a second leader for a few seconds.

kubernetes_asyncio's leader election is not used: it takes no clock and counts by the wall clock (a
jump of a minute forward makes a candidate take over at once); an error other than ApiException,
such as a refused connection, ends its loop and leaves the work running, as cancellation does; a
request that hangs keeps the leader leading beyond its Lease; it never releases the Lease. Each was
tested.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import structlog

from extender.kube.controller_runtime.lease_lock import LeaseLock, LeaseSpec, format_micro_time
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.clock import Clock, within
from extender.kube.rest.transport import TransportError

JITTER: Final = 1.2

_MIN_WAIT_SECONDS: Final = 0.01


class LeadershipLostError(Exception):
    """The Lease was not renewed in time, or has another holder; the work has been cancelled."""


@dataclass(frozen=True, slots=True)
class LeaderElectionConfig:
    """The duration of the Lease, and how often its holder renews it, in seconds.

    Raise ValueError if the holder would not give up in time, or could not try twice.
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
        """The timeout of an attempt; the holder has time for a second one."""
        return self.renew_deadline / 2


class LeaderElector:
    """One candidate for a Lease. Its ``identity`` must be unique."""

    def __init__(
        self,
        lock: LeaseLock,
        identity: str,
        clock: Clock,
        rng: Random,
        config: LeaderElectionConfig | None = None,
        log: Any = None,
    ) -> None:
        self.identity = identity
        self._lock = lock
        self._clock = clock
        self._rng = rng
        self._config = config or LeaderElectionConfig()
        self._log = (log or structlog.get_logger()).bind(lease=str(lock), identity=identity)
        self._observed = LeaseSpec()
        self._observed_at = 0.0
        self._leads_until = -1.0

    @property
    def is_leader(self) -> bool:
        """Whether this candidate leads now."""
        return self._clock.monotonic() < self._leads_until

    @property
    def holder(self) -> str:
        """The last observed holder of the Lease; "" if there was none."""
        return self._observed.holder

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait for the leadership, then run ``work`` while this candidate leads.

        Return when the work has ended, and raise its exception; raise LeadershipLostError if
        the leadership ended first. It may be run again.
        """
        try:
            await self._acquire()
        except asyncio.CancelledError:
            await self._release_if_held()
            raise
        self._log.info("leader_elected")
        self._lock.record_event(f"{self.identity} became leader")
        renewing = asyncio.create_task(self._renew())
        working = asyncio.create_task(work())
        try:
            await asyncio.wait((renewing, working), return_when=asyncio.FIRST_COMPLETED)
            lost = not working.done()
        finally:
            await self._step_down(renewing, working)
        if lost:
            self._log.warning("leader_lost", holder=self.holder)
            raise LeadershipLostError(f"{self.identity} no longer holds {self._lock}")

    async def _acquire(self) -> None:
        while not await self._attempt(self._config.attempt_seconds):
            pause = self._config.retry_period * (1 + JITTER * self._rng.random())
            await self._clock.sleep(pause)

    async def _renew(self) -> None:
        """Renew the Lease periodically, until the renew deadline has passed."""
        now = began = self._clock.monotonic()
        while (left := self._leads_until - now) > _MIN_WAIT_SECONDS:
            pause = min(began + self._config.retry_period - now, left)
            if pause > _MIN_WAIT_SECONDS:
                await self._clock.sleep(pause)
            else:
                began = now
                await self._attempt(min(self._config.attempt_seconds, left))
            now = self._clock.monotonic()

    async def _attempt(self, seconds: float) -> bool:
        """Return whether one attempt to acquire or renew succeeded within a timeout."""
        try:
            return await within(self._clock, seconds, self._acquire_or_renew())
        except (ApiError, MalformedError, TransportError, TimeoutError) as error:
            self._log.debug("leader_attempt_failed", error=str(error))
            return False

    async def _acquire_or_renew(self) -> bool:
        if self.is_leader:
            try:
                await self._claim(self._lock.update, self._next_spec(self._observed))
            except (ApiError, MalformedError, TransportError) as error:
                self._log.debug("leader_looks_again", error=str(error))
            else:
                return True
        found = await self._lock.read()
        if found is None:
            await self._claim(self._lock.create, self._new_spec(None, 0))
            return True
        self._observe(found)
        if found.holder not in ("", self.identity) and self._is_lease_valid():
            return False
        await self._claim(self._lock.update, self._next_spec(found))
        return True

    async def _claim(self, write: Callable[[LeaseSpec], Awaitable[None]], spec: LeaseSpec) -> None:
        sent = self._clock.monotonic()
        await write(spec)
        self._observe(spec)
        self._leads_until = sent + self._config.renew_deadline

    def _observe(self, spec: LeaseSpec) -> None:
        """Record an observed spec, and the time of its first observation."""
        if spec.holder != self._observed.holder:
            self._log.info("leader_seen", holder=spec.holder)
        if spec != self._observed:
            self._observed, self._observed_at = spec, self._clock.monotonic()
        if spec.holder != self.identity:
            self._leads_until = -1.0

    def _is_lease_valid(self) -> bool:
        """Return whether the last observed Lease has not expired."""
        return self._clock.monotonic() < self._observed_at + self._observed.seconds

    def _next_spec(self, spec: LeaseSpec) -> LeaseSpec:
        """Return the spec that follows an observed one: a renewal, or a change of the holder."""
        if spec.holder == self.identity:
            return self._new_spec(spec.acquire_time, spec.transitions)
        return self._new_spec(None, spec.transitions + 1)

    def _new_spec(self, acquired: str | None, transitions: int) -> LeaseSpec:
        now = format_micro_time(self._clock.now_ns())
        seconds = self._config.lease_seconds
        return LeaseSpec(self.identity, seconds, acquired or now, now, transitions)

    async def _step_down(self, renewing: asyncio.Task[None], working: asyncio.Task[None]) -> None:
        """End the work while the Lease is still renewed, if possible; then release the Lease.

        Raise the exception of the work. If cancelled, do not wait for the work, and let the
        Lease expire.
        """
        try:
            working.cancel()
            await asyncio.wait((working,))
        finally:
            renewing.cancel()
            self._leads_until = -1.0
        await asyncio.wait((renewing,))
        self._lock.record_event(f"{self.identity} stopped leading")
        await self._release_if_held()
        for task in (working, renewing):
            if not task.cancelled():
                task.result()

    async def _release_if_held(self) -> None:
        self._leads_until = -1.0
        if self.holder != self.identity:
            return
        try:
            await within(self._clock, self._config.attempt_seconds, self._release())
        except (ApiError, MalformedError, TransportError, TimeoutError) as error:
            self._log.warning("leader_not_released", error=str(error))

    async def _release(self) -> None:
        while (found := await self._lock.read()) is not None and found.holder == self.identity:
            now = format_micro_time(self._clock.now_ns())
            try:
                await self._lock.update(LeaseSpec("", 1, now, now, found.transitions))
            except ApiError as error:
                if error.status != 409:  # a renewal that had timed out was carried out after all
                    raise
            else:
                self._log.info("leader_released")
                return
