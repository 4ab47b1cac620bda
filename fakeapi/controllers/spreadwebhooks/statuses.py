"""A status that is written before a pod is let through, and what happens if it cannot be.

The state to begin with is the newest of what the copies show and what this process has written.
Somebody else may have written in between; then the server is asked what there is now, and
everything is decided again on that, a little later each time, WRITE_ATTEMPTS times in all.

Source: openkruise/kruise pkg/util/workloadspread/workloadspread.go (acquireSuitableSubset, with
retry.RetryOnConflict).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

import msgspec

from extender.kube.api_error import ApiError
from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.workloadspread.spreads import WrittenSpread, decode_spread, encode_status
from extender.spreadanswers import Answer
from fakeapi.controllers.spreading.copies import SPREADS, SpreadCopies
from fakeapi.controllers.spreading.written import Written
from fakeapi.controllers.spreadwebhooks.figures import Figures
from policies.spreading.admitting import WRITE_ATTEMPTS
from policies.spreading.model import Status

FIRST_PAUSE_SECONDS: Final = 0.01
PAUSE_FACTOR: Final = 5
PAUSE_JITTER: Final = 0.1

_NOT_FOUND: Final = 404
_CONFLICT: Final = 409

Decide = Callable[[WrittenSpread], Answer]
"""Decides on the state of a WorkloadSpread."""


class StatusWriter:
    """Decides about pods, and writes down what was decided."""

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

    async def settle(self, found: WrittenSpread, decide: Decide) -> Answer | None:
        """Decide, write the status if there is one to write, and give the answer.

        None: the WorkloadSpread has gone. Raises ApiError (409 if all attempts met a conflict),
        ObjectError, MalformedError, TransportError.
        """
        spread = found.spread
        conflict: ApiError | None = None
        for attempt in range(WRITE_ATTEMPTS):
            if attempt:
                await self._clock.sleep(self._pause(attempt - 1))
            async with self._written.turn(spread.uid):
                current = await self._live(found) if attempt else self._known(found)
                if current is None:
                    return None
                answer = decide(current)
                if answer.admission.status is None:
                    return answer
                try:
                    self._written.keep(await self._write(current, answer.admission.status))
                except ApiError as error:
                    if error.status != _CONFLICT:
                        raise
                    self._figures.conflicts.inc()
                    conflict = error
                else:
                    return answer
        assert conflict is not None
        raise conflict

    def _known(self, found: WrittenSpread) -> WrittenSpread | None:
        """Give the newest state that is known here; None if there is none any more."""
        seen = self._copies.index.get(found.spread.namespace, found.spread.name)
        return None if seen is None else self._written.newest(seen)

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
