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
from extender.kube.workloadspread.spreads import WrittenSpread, decode_spread, encode_status
from extender.spreadanswers import Answer
from fakeapi.controllers.spreading.copies import SPREADS, SpreadCopies
from fakeapi.controllers.spreading.written import Written
from fakeapi.controllers.spreadwebhooks.figures import Figures
from fakeapi.controllers.spreadwebhooks.rivals import Rivals
from fakeapi.controllers.spreadwebhooks.together import (
    MOST_TOGETHER,
    Coming,
    Decide,
    Way,
    decide_in_turn,
    fail,
)
from policies.spreading.admitting import WRITE_ATTEMPTS
from policies.spreading.model import Status

FIRST_PAUSE_SECONDS: Final = 0.01
PAUSE_FACTOR: Final = 5
PAUSE_JITTER: Final = 0.1

_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


class StatusWriter:
    """Decides about pods, and writes the resulting statuses."""

    def __init__(
        self,
        client: Client,
        copies: SpreadCopies,
        written: Written,
        clock: Clock,
        rng: Random,
        figures: Figures,
    ) -> None:
        self._client = client
        self._copies = copies
        self._written = written
        self._clock = clock
        self._rng = rng
        self._figures = figures
        self._coming: dict[str, list[Coming]] = {}
        self._rivals = Rivals(clock, rng)

    async def settle(
        self, found: WrittenSpread, decide: Decide, way: Way = Way.IN
    ) -> Answer | None:
        """Decide, write the status if it changes, and return the answer.

        Return None if the WorkloadSpread is gone. Raises ApiError (409 if all attempts met a
        conflict), ObjectError, MalformedError, TransportError.
        """
        uid, coming = found.spread.uid, Coming(decide, way)
        for attempt in range(WRITE_ATTEMPTS):
            if attempt:
                await self._clock.sleep(self._pause(attempt - 1))
            coming.conflict = None
            coming.attempt = attempt
            self._coming.setdefault(uid, []).append(coming)
            try:
                async with self._written.turn(uid):
                    while not coming.is_settled:  # earlier pods may fill a batch
                        await self._settle_together(found)
            finally:
                self._leave(uid, coming)
            if coming.conflict is None:
                return coming.outcome()
        assert coming.conflict is not None
        raise coming.conflict

    async def _settle_together(self, found: WrittenSpread) -> None:
        """Settle all waiting pods with one write, as if each had arrived after the previous one."""
        await self._rivals.give_way(found.spread.uid)
        together = self._next(found.spread.uid)
        current = await self._newest(found, together)
        if current is None:
            for each in together:
                each.settle(None)
            return
        status, depending = await decide_in_turn(current, together)
        if status is not None:
            await self._write_for(depending, current, status)

    def _next(self, uid: str) -> list[Coming]:
        """Return the pods of the next write, by fewest attempts left; creations before removals."""
        waiting = [each for each in self._coming[uid] if not each.is_settled]
        chosen = sorted(waiting, key=lambda each: -each.attempt)[:MOST_TOGETHER]
        return sorted(chosen, key=lambda each: each.way)

    async def _write_for(
        self, depending: Sequence[Coming], current: WrittenSpread, status: Status
    ) -> None:
        """Write the status that some pods depend on, and settle them by the result."""
        uid = current.spread.uid
        if self._written.is_foreign(current):
            self._rivals.notice(uid)
        begun = self._clock.monotonic()
        try:
            self._written.keep(await self._write(current, status))
        except ApiError as error:
            if error.status != _CONFLICT:
                fail(depending, error)
                return
            self._figures.conflicts.inc()
            self._written.overtaken(current)
            self._rivals.notice(uid)
            for each in depending:
                each.conflict = error
        except (MalformedError, ObjectError, TransportError) as error:
            fail(depending, error)
        else:
            self._rivals.wrote(uid, self._clock.monotonic() - begun)
            for each in depending:
                each.settle(each.answer)

    def _leave(self, uid: str, coming: Coming) -> None:
        """Remove a pod from the waiting list: settled, in conflict or cancelled."""
        left = [each for each in self._coming[uid] if each is not coming]
        if left:
            self._coming[uid] = left
        else:
            del self._coming[uid]

    async def _newest(
        self, found: WrittenSpread, together: Iterable[Coming]
    ) -> WrittenSpread | None:
        """Return the newest version; None if the WorkloadSpread is gone.

        It is read from the server after a conflict, if the known one is outdated, and while other
        processes write.
        """
        again = any(each.attempt for each in together)
        if not again and not self._rivals.around(found.spread.uid):
            seen = self._copies.index.get(found.spread.namespace, found.spread.name)
            known = None if seen is None else self._written.newest(seen)
            if known is None or not self._written.is_overtaken(known):
                return known
        live = await self._live(found)
        if live is not None:
            self._written.learn(live)
        return live

    async def _live(self, found: WrittenSpread) -> WrittenSpread | None:
        path = SPREADS.object(found.spread.name, found.spread.namespace)
        try:
            return await self._client.get(path, _decode)
        except ApiError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    async def _write(self, current: WrittenSpread, status: Status) -> WrittenSpread:
        path = SPREADS.object(current.spread.name, current.spread.namespace)
        document = {**current.document, "status": encode_status(status)}
        body = msgspec.json.encode(document)
        return await self._client.update(path.subresource("status"), body, _decode)

    def _pause(self, earlier: int) -> float:
        seconds: float = FIRST_PAUSE_SECONDS * PAUSE_FACTOR**earlier
        return seconds * (1 + PAUSE_JITTER * self._rng.random())


def _decode(raw: bytes) -> WrittenSpread:
    return decode_spread(bytes(raw))
