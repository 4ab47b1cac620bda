"""Write a WorkloadSpread's status before a pod is admitted, and retry after conflicts.

A decision starts from the newest version of the caches and of this process's writes. If another
process has written in between, the current version is read from the server and everything is
decided again on it, after an increasing pause, WRITE_ATTEMPTS times in all.

Pods that arrive while a status is being written wait, and share the next write
(:mod:`status_batch`). The first one to get the lock makes it, and settles the others. Pods with the
most conflicts come first. A version that is known to be outdated is not written onto.

Between processes only the resourceVersion orders writes. A process that writes repeatedly, each
time onto its own last write, never gets a conflict, and another one, which must read again after
each conflict, is always too late. A process that has recently detected another writer therefore
pauses after each of its writes (:class:`ConcurrentWriters`), so that the other can read and write,
and reads from the server before it writes again. Pods that arrive in the pause share the next
write, so little time is lost. Upstream's webhooks do not do this.

Source: openkruise/kruise pkg/util/workloadspread/workloadspread.go (acquireSuitableSubset, with
retry.RetryOnConflict).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Final

import msgspec

from extender.controllers.metrics import WebhookMetrics
from extender.controllers.webhooks.status_batch import (
    BATCH_SIZE,
    Decide,
    PendingPod,
    PodTransition,
    decide_batch,
    resolve_all_with_error,
)
from extender.controllers.workloadspread.assumed_statuses import AssumedStatuses
from extender.controllers.workloadspread.spread_cache import WORKLOAD_SPREADS, WorkloadSpreadCache
from extender.kube.decoders.typed_decoder import ObjectError
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from extender.kube.rest.transport import TransportError
from extender.kube.workloadspread.pod_injection import InjectionResult
from extender.kube.workloadspread.spreads import (
    StoredWorkloadSpread,
    decode_workloadspread,
    encode_status,
)
from policies.workloadspread.model import WorkloadSpreadStatus
from policies.workloadspread.pod_admission import WRITE_ATTEMPTS

FIRST_BACKOFF_SECONDS: Final = 0.01
BACKOFF_FACTOR: Final = 5
BACKOFF_JITTER: Final = 0.1
REMEMBERED_SECONDS: Final = 5.0
"""How long a detected writer counts as active."""
LEAST_YIELD_SECONDS: Final = 0.01
LONGEST_YIELD_SECONDS: Final = 0.5
YIELD_FACTORS: Final = (2.0, 4.0)
"""The pause, as multiples of the duration of our own write.

Another process takes as long to read, and as long again to write.
"""


class ConcurrentWriters:
    """Tracks other writers, by the UID of the WorkloadSpread that they write."""

    def __init__(self, clock: Clock, rng: Random) -> None:
        self._clock = clock
        self._rng = rng
        self._last_write: dict[str, float] = {}
        self._paused_until: dict[str, float] = {}

    def record_other_write(self, uid: str) -> None:
        """Record a write by another process."""
        now = self._clock.monotonic()
        self._last_write = {
            each: at for each, at in self._last_write.items() if _is_recent(at, now)
        }
        self._last_write[uid] = now

    def has_other_writers(self, uid: str) -> bool:
        """Return whether another process has written recently."""
        last = self._last_write.get(uid)
        return last is not None and _is_recent(last, self._clock.monotonic())

    def record_own_write(self, uid: str, seconds: float) -> None:
        """Record our own write and its duration: if others write, pause before the next one."""
        if self.has_other_writers(uid):
            pause = seconds * self._rng.uniform(*YIELD_FACTORS)
            pause = max(LEAST_YIELD_SECONDS, min(pause, LONGEST_YIELD_SECONDS))
            self._paused_until[uid] = self._clock.monotonic() + pause

    async def wait_for_others(self, uid: str) -> None:
        """Wait until the pause is over."""
        until = self._paused_until.pop(uid, None)
        if until is not None:
            await self._clock.sleep(until - self._clock.monotonic())


def _is_recent(time: float, now: float) -> bool:
    return now - time < REMEMBERED_SECONDS


class WorkloadSpreadStatusWriter:
    """Decides about pods, and writes the resulting statuses."""

    def __init__(
        self,
        client: Client,
        cache: WorkloadSpreadCache,
        assumed_statuses: AssumedStatuses,
        clock: Clock,
        rng: Random,
        metrics: WebhookMetrics,
    ) -> None:
        self._client = client
        self._cache = cache
        self._assumed = assumed_statuses
        self._clock = clock
        self._rng = rng
        self._metrics = metrics
        self._waiting: dict[str, list[PendingPod]] = {}
        self._others = ConcurrentWriters(clock, rng)

    async def decide_and_write(
        self,
        found: StoredWorkloadSpread,
        decide: Decide,
        transition: PodTransition = PodTransition.CREATION,
    ) -> InjectionResult | None:
        """Decide, write the status if it changes, and return the answer.

        Return None if the WorkloadSpread is gone. Raises ApiError (409 if all attempts met a
        conflict), ObjectError, MalformedError, TransportError.
        """
        uid, pod = found.spread.uid, PendingPod(decide, transition)
        for attempt in range(WRITE_ATTEMPTS):
            if attempt:
                await self._clock.sleep(self._backoff(attempt - 1))
            pod.conflict = None
            pod.attempt = attempt
            self._waiting.setdefault(uid, []).append(pod)
            try:
                async with self._assumed.write_lock(uid):
                    while not pod.is_resolved:  # earlier pods may fill a batch
                        await self._write_batch(found)
            finally:
                self._leave(uid, pod)
            if pod.conflict is None:
                return pod.result()
        assert pod.conflict is not None
        raise pod.conflict

    async def _write_batch(self, found: StoredWorkloadSpread) -> None:
        """Settle all waiting pods with one write, as if each had arrived after the previous one."""
        await self._others.wait_for_others(found.spread.uid)
        batch = self._next_batch(found.spread.uid)
        current = await self._newest(found, batch)
        if current is None:
            for each in batch:
                each.resolve(None)
            return
        status, depending = await decide_batch(current, batch)
        if status is not None:
            await self._write_for(depending, current, status)

    def _next_batch(self, uid: str) -> list[PendingPod]:
        """Return the pods of the next write, by fewest attempts left; creations before removals."""
        waiting = [each for each in self._waiting[uid] if not each.is_resolved]
        chosen = sorted(waiting, key=lambda each: -each.attempt)[:BATCH_SIZE]
        return sorted(chosen, key=lambda each: each.transition)

    async def _write_for(
        self,
        depending: Sequence[PendingPod],
        current: StoredWorkloadSpread,
        status: WorkloadSpreadStatus,
    ) -> None:
        """Write the status that some pods depend on, and settle them by the result."""
        uid = current.spread.uid
        if self._assumed.is_written_by_others(current):
            self._others.record_other_write(uid)
        begun = self._clock.monotonic()
        try:
            self._assumed.record_write(await self._write(current, status))
        except ApiError as error:
            if error.status != 409:
                resolve_all_with_error(depending, error)
                return
            self._metrics.conflicts.inc()
            self._assumed.record_conflict(current)
            self._others.record_other_write(uid)
            for each in depending:
                each.conflict = error
        except (MalformedError, ObjectError, TransportError) as error:
            resolve_all_with_error(depending, error)
        else:
            self._others.record_own_write(uid, self._clock.monotonic() - begun)
            for each in depending:
                each.resolve(each.answer)

    def _leave(self, uid: str, pod: PendingPod) -> None:
        """Remove a pod from the waiting list: settled, in conflict or cancelled."""
        left = [each for each in self._waiting[uid] if each is not pod]
        if left:
            self._waiting[uid] = left
        else:
            del self._waiting[uid]

    async def _newest(
        self, found: StoredWorkloadSpread, batch: Iterable[PendingPod]
    ) -> StoredWorkloadSpread | None:
        """Return the newest version; None if the WorkloadSpread is gone.

        It is read from the server after a conflict, if the known one is outdated, and while other
        processes write.
        """
        again = any(each.attempt for each in batch)
        if not again and not self._others.has_other_writers(found.spread.uid):
            seen = self._cache.index.get(found.spread.namespace, found.spread.name)
            known = None if seen is None else self._assumed.newest(seen)
            if known is None or not self._assumed.is_outdated(known):
                return known
        live = await self._fetch(found)
        if live is not None:
            self._assumed.record_read(live)
        return live

    async def _fetch(self, found: StoredWorkloadSpread) -> StoredWorkloadSpread | None:
        path = WORKLOAD_SPREADS.object(found.spread.name, found.spread.namespace)
        return await self._client.find(path, _decode)

    async def _write(
        self, current: StoredWorkloadSpread, status: WorkloadSpreadStatus
    ) -> StoredWorkloadSpread:
        path = WORKLOAD_SPREADS.object(current.spread.name, current.spread.namespace)
        document = {**current.document, "status": encode_status(status)}
        body = msgspec.json.encode(document)
        return await self._client.update(path.subresource("status"), body, _decode)

    def _backoff(self, earlier: int) -> float:
        seconds: float = FIRST_BACKOFF_SECONDS * BACKOFF_FACTOR**earlier
        return seconds * (1 + BACKOFF_JITTER * self._rng.random())


def _decode(raw: bytes) -> StoredWorkloadSpread:
    return decode_workloadspread(bytes(raw))
