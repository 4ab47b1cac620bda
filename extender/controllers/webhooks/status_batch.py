"""Pods that share one status write: decided one after another, written at once.

Pods arrive and wait while a status is being written. They are decided as if each had arrived after
the previous status had been written: each sees the status that the previous one resulted in, as it
would read it back. The last status includes all of them; no pod is admitted before it is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from extender.kube.rest.api_errors import ApiError
from extender.kube.workloadspread.pod_injection import InjectionResult
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from policies.workloadspread.model import WorkloadSpreadStatus

BATCH_SIZE: Final = 24
"""How many pods share one write.

If all pods that arrive at once shared one write, the server would be idle meanwhile; and deciding
takes time, in which another process may write.
"""

Decide = Callable[[StoredWorkloadSpread], InjectionResult]
"""Decides on a version of a WorkloadSpread; the times in its result are whole seconds."""


class PodTransition(IntEnum):
    """Whether a pod is created or removed, in the order of decisions within one write.

    A removed pod's replica counts as free only in the next write: until then it is unknown whether
    the pod is removed before a new one is created.
    """

    CREATION = 0
    REMOVAL = 1


@dataclass(slots=True, eq=False)
class PendingPod:
    """A pod that waits for a decision, and for the status write of that decision.

    ``attempt`` counts from 0. A ``conflict`` means that another process has written; the pod
    retries.
    """

    decide: Decide
    transition: PodTransition = PodTransition.CREATION
    attempt: int = 0
    answer: InjectionResult | None = None
    conflict: ApiError | None = None
    _settled: list[InjectionResult | BaseException | None] = field(default_factory=list)

    @property
    def is_resolved(self) -> bool:
        """Whether this attempt has ended."""
        return bool(self._settled) or self.conflict is not None

    def resolve(self, outcome: InjectionResult | BaseException | None) -> None:
        """Set the final answer or the error; None means that the WorkloadSpread is gone."""
        self._settled.append(outcome)

    def result(self) -> InjectionResult | None:
        """Return the answer, or raise the error."""
        [outcome] = self._settled
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


async def decide_batch(
    current: StoredWorkloadSpread, batch: Sequence[PendingPod]
) -> tuple[WorkloadSpreadStatus | None, list[PendingPod]]:
    """Decide about pods, each on the status that the previous one resulted in.

    A status equals what would be read back after writing it, since times are whole seconds in both.
    Return the status to write, None if there is none, and the pods that depend on the write. The
    others are settled.
    """
    status: WorkloadSpreadStatus | None = None
    depending: list[PendingPod] = []
    for each in batch:
        if status is not None:
            current = replace(current, spread=replace(current.spread, status=status))
        [answer] = await asyncio.gather(_decide(each, current), return_exceptions=True)
        if isinstance(answer, BaseException):
            each.resolve(answer)
            continue
        status = answer.admission.status or status
        if status is None:
            each.resolve(answer)
        else:
            each.answer = answer
            depending.append(each)
    return status, depending


def resolve_all_with_error(pods: Iterable[PendingPod], error: Exception) -> None:
    """Settle all of these pods with an error."""
    for each in pods:
        each.resolve(error)


async def _decide(pod: PendingPod, current: StoredWorkloadSpread) -> InjectionResult:
    """Decide within a task, so that an error only affects this pod."""
    return pod.decide(current)
