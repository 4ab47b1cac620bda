"""The preemption executor: marks and deletes victims, and clears lower nominations.

Up to 1.32 kube-scheduler deletes all victims concurrently, then clears nominations; the first error
ends the preemption. Since 1.33 (SchedulerAsyncPreemption) this runs concurrently with scheduling:
nominations first, then all victims but the last concurrently, then the last; the preemptor is not
scheduled meanwhile. Victims that are already being deleted are skipped, and a missing victim is no
error.

Source: pkg/scheduler/framework/preemption/{preemption,executor}.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.client import Client
from extender.kube.events import EventRecorder
from extender.kube.transport import TransportError
from fakeapi.controlplane.scheduler.searching import PodAttempt
from fakeapi.controlplane.scheduler.sightings import CachedPod, PodCache
from fakeapi.controlplane.scheduler.statuses import SchedulerStatusWriter, path_of, reference
from policies.decision import Candidate
from policies.model import Pod
from policies.upstream import RELEASES, Release

REQUEST_ERRORS: Final = (ApiError, MalformedError, TransportError)
"""Errors of a write to the API server."""

_ASYNCHRONOUS_SINCE: Final = "1.33"
_NOT_FOUND: Final = 404


def is_asynchronous(release: Release) -> bool:
    """Return whether a release executes preemptions concurrently with scheduling."""
    order = list(RELEASES)
    return order.index(release.name) >= order.index(_ASYNCHRONOUS_SINCE)


class PreemptionExecutor:
    """Executes preemptions; ``displaced`` is called for each pod that lost its nomination."""

    def __init__(
        self,
        client: Client,
        pods: PodCache,
        writer: SchedulerStatusWriter,
        recorder: EventRecorder,
        displaced: Callable[[str], None],
    ) -> None:
        self._client = client
        self._pods = pods
        self._writer = writer
        self._recorder = recorder
        self._displaced = displaced

    async def evict(self, case: PodAttempt, chosen: Candidate) -> None:
        """Evict the victims, then clear nominations. Raises the errors in REQUEST_ERRORS."""
        await self._evict_all(case, chosen, self.victims(chosen))
        await self._clear_nominations(case, chosen)

    async def evict_asynchronously(
        self, case: PodAttempt, chosen: Candidate, victims: Sequence[CachedPod]
    ) -> None:
        """Clear nominations, then evict the victims, the last one separately. Raises the same."""
        await self._clear_nominations(case, chosen)
        *first, last = victims
        await self._evict_all(case, chosen, first)
        await self._evict_victim(case, chosen, last)

    def victims(self, chosen: Candidate) -> list[CachedPod]:
        """Return the victims that are not being deleted."""
        there = (pod for pod in chosen.victims.pods if not pod.terminating)
        return list(self._cached_pods(there))

    async def _evict_all(
        self, case: PodAttempt, chosen: Candidate, victims: Sequence[CachedPod]
    ) -> None:
        going = (self._evict_victim(case, chosen, victim) for victim in victims)
        for outcome in await asyncio.gather(*going, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _evict_victim(self, case: PodAttempt, chosen: Candidate, victim: CachedPod) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{case.cached.scheduler}: preempting to accommodate a higher priority pod",
        }
        try:
            await self._writer.set_condition(victim, condition)
            await self._client.delete(path_of(victim))
        except ApiError as error:
            if error.status == _NOT_FOUND:
                return
            raise
        told = f"Preempted by pod {case.cached.uid} on node {chosen.node}"
        self._recorder.normal(reference(victim), "Preempted", told)

    async def _clear_nominations(self, case: PodAttempt, chosen: Candidate) -> None:
        """Clear nominations of less important pods to the node; errors are ignored."""
        nominated = case.snapshot.nodes[chosen.node].nominated
        lower = (pod for pod in nominated if pod.priority < case.pod.priority)
        for pod in self._cached_pods(lower):
            try:
                await self._writer.clear_nomination(pod)
            except REQUEST_ERRORS:
                continue
            self._pods.nominate(pod, None)
            self._displaced(pod.key)

    def _cached_pods(self, pods: Iterable[Pod]) -> Iterable[CachedPod]:
        for pod in pods:
            seen = self._pods.cached.get(pod.key)
            if seen is not None and seen.uid == pod.uid:
                yield seen
