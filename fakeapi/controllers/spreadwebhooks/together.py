"""Pods that wait for the same status, decided one after the other and written down at once.

While one status is being written others come and wait. They are decided as if each had come when
the last one had been written: each sees the status that the last one asked for, as it would read
it. What all of them ask for is one status; no one is let through before it is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from extender.kube.api_error import ApiError
from extender.kube.workloadspread.spreads import WrittenSpread
from extender.spreadanswers import Answer
from policies.spreading.model import Status

MOST_TOGETHER: Final = 24
"""How many pods share one write.

If all who come at once waited for the same write, the server would have nothing to do meanwhile;
and deciding takes time, in which another process may write.
"""

Decide = Callable[[WrittenSpread], Answer]
"""Decides on the state of a WorkloadSpread; what time it is it says in whole seconds."""


class Way(IntEnum):
    """Where a pod goes, in the order in which those that share a write are decided.

    A place that is given up counts as free only in the next write: until then nobody can tell
    whether the pod that had it goes before another one comes.
    """

    IN = 0
    OUT = 1


@dataclass(slots=True, eq=False)
class Coming:
    """A pod that waits: for a decision, and for the decision to be written down.

    ``attempt`` counts from 0. ``conflict``: somebody else has written since; it is to come again.
    """

    decide: Decide
    way: Way = Way.IN
    attempt: int = 0
    answer: Answer | None = None
    conflict: ApiError | None = None
    _settled: list[Answer | BaseException | None] = field(default_factory=list)

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to wait for any more in this attempt."""
        return bool(self._settled) or self.conflict is not None

    def settle(self, outcome: Answer | BaseException | None) -> None:
        """Return it an answer for good, or what went wrong; None: the WorkloadSpread has gone."""
        self._settled.append(outcome)

    def outcome(self) -> Answer | None:
        """Return the answer; raises what went wrong."""
        [outcome] = self._settled
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


async def decide_in_turn(
    current: WrittenSpread, together: Sequence[Coming]
) -> tuple[Status | None, list[Coming]]:
    """Decide about pods, each on what the last one left.

    That is read as it would be if it had been written, since times are whole seconds in both.

    Gives the status to write, None if there is none, and those that depend on its being written.
    The others are settled.
    """
    status: Status | None = None
    depending: list[Coming] = []
    for each in together:
        if status is not None:
            current = replace(current, spread=replace(current.spread, status=status))
        [answer] = await asyncio.gather(_decided(each, current), return_exceptions=True)
        if isinstance(answer, BaseException):
            each.settle(answer)
            continue
        status = answer.admission.status or status
        if status is None:
            each.settle(answer)
        else:
            each.answer = answer
            depending.append(each)
    return status, depending


def fail(coming: Iterable[Coming], error: Exception) -> None:
    """Tell all of them what went wrong."""
    for each in coming:
        each.settle(error)


async def _decided(coming: Coming, current: WrittenSpread) -> Answer:
    """Decide where a mistake is the mistake of one."""
    return coming.decide(current)
