"""Submits the jobs of a trace to a cluster, each at its time, and deletes those that finished."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
from msgspec import Raw

from extender.kube.informers.shared_informer import cancel_tasks
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Propagation
from extender.kube.rest.resources import NAMESPACES, PODS, CollectionPath, ObjectPath
from fakeapi.apiserver.store.object_store import StoreEvent
from fakeapi.backtest.simulation.observation import RunObserver
from fakeapi.backtest.simulation.pod_work import JOB_NAME, SECOND_NS, WorkByPod
from fakeapi.backtest.simulation.trace_objects import job_document
from fakeapi.backtest.traces.trace import TraceJob
from fakeapi.controlplane.workloads.job_status import JOBS
from fakeapi.testing.virtual_cluster import SocketlessCluster

_NOT_FOUND: Final = 404
_DRAIN_STEP_SECONDS: Final = 600.0


class Submission:
    """Submits the jobs of a trace to a cluster, each at its time, and deletes finished ones."""

    def __init__(
        self,
        cluster: SocketlessCluster,
        work: WorkByPod,
        observer: RunObserver,
        class_names: Mapping[int, str],
    ) -> None:
        self._class_names = class_names
        self._cluster = cluster
        self._clock = cluster.clock
        self._work = work
        self._observer = observer
        self._namespaces: set[str] = set()
        self._pods: dict[tuple[str, str], dict[str, None]] = {}
        self._finished: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    async def submit_all(self, jobs: Iterable[TraceJob]) -> None:
        """Submit the jobs, which are in order of their time since the start."""
        start = self._clock.monotonic()
        for job in jobs:
            left = start + job.submitted_ns / SECOND_NS - self._clock.monotonic()
            if left > 0:
                await self._clock.advance(left)
            await self._submit(job)

    async def drain(self, limit_ns: int) -> None:
        """Let time pass until all jobs have finished, or until a limit."""
        end = self._clock.monotonic() + limit_ns / SECOND_NS
        while len(self._work) and self._clock.monotonic() < end:
            await self._clock.advance(min(_DRAIN_STEP_SECONDS, end - self._clock.monotonic()))

    @asynccontextmanager
    async def deleting_finished_jobs(self) -> AsyncIterator[None]:
        """Delete each Job with its pods once it is complete, until the block ends."""
        stop = self._cluster.world.api.store.tap(self._observe_write)
        task = asyncio.create_task(self._delete_all())
        try:
            yield
        finally:
            stop()
            await cancel_tasks((task,))

    def _observe_write(self, event: StoreEvent | None) -> None:
        if event is None or event.type == "DELETED":
            return
        if event.kind.kind == "Pod" and event.type == "ADDED":
            namespace, _, name = event.entry.key.partition("/")
            job = event.entry.labels.get(JOB_NAME, "")
            self._pods.setdefault((namespace, job), {})[name] = None
        elif event.kind.kind == "Job":
            decoded = JOBS.decode(Raw(event.entry.raw))
            if decoded.true_condition("Complete"):
                self._finished.put_nowait((decoded.metadata.namespace, decoded.metadata.name))

    async def _delete_all(self) -> None:
        while True:
            namespace, name = await self._finished.get()
            for pod in self._pods.pop((namespace, name), {}):
                await self._delete(PODS.object(pod, namespace))
            await self._delete(JOBS.resource.object(name, namespace))
            self._work.remove(namespace, name)

    async def _delete(self, path: ObjectPath) -> None:
        try:
            await self._cluster.client.delete(path, propagation=Propagation.BACKGROUND)
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise

    async def _submit(self, job: TraceJob) -> None:
        if job.tenant not in self._namespaces:
            self._namespaces.add(job.tenant)
            await self._create(NAMESPACES.collection(), {"metadata": {"name": job.tenant}})
        self._observer.submit(self._work.add(job))
        document = job_document(job, self._class_names[job.priority])
        await self._create(JOBS.resource.collection(job.tenant), document)

    async def _create(self, path: CollectionPath, document: Mapping[str, Any]) -> None:
        await self._cluster.client.create(path, orjson.dumps(document), bytes)
