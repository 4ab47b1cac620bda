"""Writes the time of each checkpoint into an annotation of the pod, for policies that read it.

A job that keeps its work at each multiple of some time records it in the annotation that the policy
names (``lostWork.checkpoint``). The first checkpoint of a replacement is one such time after its
start, since it goes on from a checkpoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

import orjson

from extender.config.preemption_policy import PolicySource, decode_policy
from extender.kube.decoders.object_meta import format_time
from extender.kube.informers.shared_informer import cancel_tasks
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client, PatchType
from extender.kube.rest.clock import Clock
from extender.kube.rest.resources import PODS, ObjectPath
from fakeapi.apiserver.store.object_store import StoreEvent
from fakeapi.backtest.simulation.observed_pod import ObservedPod, decode_observed_pod
from fakeapi.backtest.simulation.pod_work import SECOND_NS, WorkByPod

_NOT_FOUND: Final = 404


def checkpoint_annotations(source: PolicySource | None) -> frozenset[str]:
    """Return the annotations that a policy reads the time of checkpoints from."""
    if source is None or source.text is None:
        return frozenset()
    rules = decode_policy(source).rules
    return frozenset(rule.lost_work.checkpoint for rule in rules) - {""}


class CheckpointWriter:
    """Writes the annotations of pods that save checkpoints, while they run."""

    def __init__(
        self, client: Client, clock: Clock, work: WorkByPod, annotations: Iterable[str]
    ) -> None:
        self._client = client
        self._clock = clock
        self._work = work
        self._annotations = sorted(annotations)
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Write until the block ends, with :meth:`observe_write` called for each write."""
        try:
            yield
        finally:
            await cancel_tasks(self._tasks.values())

    def observe_write(self, event: StoreEvent | None) -> None:
        """Begin with a pod once its container has started, and end with its deletion."""
        if event is None or event.kind.kind != "Pod" or not self._annotations:
            return
        pod = decode_observed_pod(event.entry.raw)
        uid = pod.metadata.uid
        if event.type == "DELETED":
            task = self._tasks.pop(uid, None)
            if task is not None:
                task.cancel()
        elif pod.started_ns and uid not in self._tasks:
            self._begin(pod)

    def _begin(self, pod: ObservedPod) -> None:
        work = self._work.find(pod.metadata.namespace, pod.metadata.labels)
        if work is None or not work.checkpoint_ns:
            return
        path = PODS.object(pod.metadata.name, pod.metadata.namespace)
        seconds = work.checkpoint_ns / SECOND_NS
        self._tasks[pod.metadata.uid] = asyncio.create_task(self._write(path, seconds))

    async def _write(self, path: ObjectPath, seconds: float) -> None:
        while True:
            await self._clock.sleep(seconds)
            now = format_time(self._clock.now_ns())
            patch = {"metadata": {"annotations": dict.fromkeys(self._annotations, now)}}
            try:
                await self._client.patch(path, PatchType.MERGE, orjson.dumps(patch), bytes)
            except ApiError as error:
                if error.status == _NOT_FOUND:
                    return
                raise
