"""Write a WorkloadSpread's status before a pod is admitted, and retry after conflicts.

A decision starts from the newest version of the caches and of this process's writes. If another
process has written in between, the current version is read from the server and everything is
decided again on it, after an increasing pause, WRITE_ATTEMPTS times in all.

Pods that arrive while a status is being written wait, and share the next write
(:mod:`status_batch`). The first one to get the lock makes it, and settles the others. Pods with the
most conflicts come first. A version that is known to be outdated is not written onto, and other
processes that write are given time (:class:`ConcurrentWriters`).

Source: openkruise/kruise pkg/util/workloadspread/workloadspread.go (acquireSuitableSubset, with
retry.RetryOnConflict).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Final

import msgspec

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.decoding import ObjectError
from extender.kube.transport import TransportError
from extender.kube.workloadspread.spreads import (
    StoredWorkloadSpread,
    decode_workloadspread,
    encode_status,
)
from extender.spreadanswers import InjectionResult
from fakeapi.controllers.spreading.copies import WORKLOAD_SPREADS, WorkloadSpreadCache
from fakeapi.controllers.spreading.written import AssumedStatuses
from fakeapi.controllers.spreadwebhooks.figures import WebhookMetrics
from fakeapi.controllers.spreadwebhooks.rivals import ConcurrentWriters
from fakeapi.controllers.spreadwebhooks.together import (
    BATCH_SIZE,
    Decide,
    PendingPod,
    PodTransition,
    decide_batch,
    resolve_all_with_error,
)
from policies.spreading.admitting import WRITE_ATTEMPTS
from policies.spreading.model import WorkloadSpreadStatus

FIRST_BACKOFF_SECONDS: Final = 0.01
BACKOFF_FACTOR: Final = 5
BACKOFF_JITTER: Final = 0.1

_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


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
        self._copies = cache
        self._written = assumed_statuses
        self._clock = clock
        self._rng = rng
        self._figures = metrics
        self._coming: dict[str, list[PendingPod]] = {}
        self._rivals = ConcurrentWriters(clock, rng)

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
        uid, coming = found.spread.uid, PendingPod(decide, transition)
        for attempt in range(WRITE_ATTEMPTS):
            if attempt:
                await self._clock.sleep(self._backoff(attempt - 1))
            coming.conflict = None
            coming.attempt = attempt
            self._coming.setdefault(uid, []).append(coming)
            try:
                async with self._written.write_lock(uid):
                    while not coming.is_resolved:  # earlier pods may fill a batch
                        await self._write_batch(found)
            finally:
                self._leave(uid, coming)
            if coming.conflict is None:
                return coming.result()
        assert coming.conflict is not None
        raise coming.conflict

    async def _write_batch(self, found: StoredWorkloadSpread) -> None:
        """Settle all waiting pods with one write, as if each had arrived after the previous one."""
        await self._rivals.wait_for_others(found.spread.uid)
        together = self._next_batch(found.spread.uid)
        current = await self._newest(found, together)
        if current is None:
            for each in together:
                each.resolve(None)
            return
        status, depending = await decide_batch(current, together)
        if status is not None:
            await self._write_for(depending, current, status)

    def _next_batch(self, uid: str) -> list[PendingPod]:
        """Return the pods of the next write, by fewest attempts left; creations before removals."""
        waiting = [each for each in self._coming[uid] if not each.is_resolved]
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
        if self._written.is_written_by_others(current):
            self._rivals.record_other_write(uid)
        begun = self._clock.monotonic()
        try:
            self._written.record_write(await self._write(current, status))
        except ApiError as error:
            if error.status != _CONFLICT:
                resolve_all_with_error(depending, error)
                return
            self._figures.conflicts.inc()
            self._written.record_conflict(current)
            self._rivals.record_other_write(uid)
            for each in depending:
                each.conflict = error
        except (MalformedError, ObjectError, TransportError) as error:
            resolve_all_with_error(depending, error)
        else:
            self._rivals.record_own_write(uid, self._clock.monotonic() - begun)
            for each in depending:
                each.resolve(each.answer)

    def _leave(self, uid: str, coming: PendingPod) -> None:
        """Remove a pod from the waiting list: settled, in conflict or cancelled."""
        left = [each for each in self._coming[uid] if each is not coming]
        if left:
            self._coming[uid] = left
        else:
            del self._coming[uid]

    async def _newest(
        self, found: StoredWorkloadSpread, together: Iterable[PendingPod]
    ) -> StoredWorkloadSpread | None:
        """Return the newest version; None if the WorkloadSpread is gone.

        It is read from the server after a conflict, if the known one is outdated, and while other
        processes write.
        """
        again = any(each.attempt for each in together)
        if not again and not self._rivals.has_other_writers(found.spread.uid):
            seen = self._copies.index.get(found.spread.namespace, found.spread.name)
            known = None if seen is None else self._written.newest(seen)
            if known is None or not self._written.is_outdated(known):
                return known
        live = await self._fetch(found)
        if live is not None:
            self._written.record_read(live)
        return live

    async def _fetch(self, found: StoredWorkloadSpread) -> StoredWorkloadSpread | None:
        path = WORKLOAD_SPREADS.object(found.spread.name, found.spread.namespace)
        try:
            return await self._client.get(path, _decode)
        except ApiError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

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
