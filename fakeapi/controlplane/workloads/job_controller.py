"""The Job controller, and the deletion of finished Jobs after their time to live.

What is done and the status are decided in :mod:`fakeapi.controlplane.workloads.job_status`.

Source: kubernetes/pkg/controller/job/job_controller.go, pkg/controller/ttlafterfinished.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from extender.controllers.context import ControllerContext
from extender.controllers.replicaset.pod_control import (
    SYNC_ERRORS,
    PodControl,
    SyncError,
    has_status,
    is_namespace_terminating,
)
from extender.controllers.replicaset.sync import SlowStartResult, slow_start_batch
from extender.kube.controller_runtime.controller import Controller
from extender.kube.decoders.object_meta import format_time
from extender.kube.rest.client import Propagation
from fakeapi.controlplane.workloads.job_status import (
    INDEX,
    JOBS,
    TRACKING,
    Job,
    JobOutcome,
    JobPods,
    JobStatus,
    PodBackoff,
    find_outcome,
    is_complete,
    is_tracked,
    new_status,
    observe_pods,
    pending_indexes,
    seconds_until_deadline,
    seconds_until_expiry,
    surplus_pods,
    wanted_active,
)
from fakeapi.controlplane.workloads.types import (
    WORKLOAD_PODS,
    Fields,
    WorkloadPod,
    pod_document,
    raw,
)
from fakeapi.controlplane.workloads.workload_caches import WorkloadCaches

BURST: Final = 500
BATCH_SECONDS: Final = 1.0
"""How long events of pods are collected before a Job is synced."""

_MANAGER: Final = "kubernetes.io/job-controller"
_COMPLETED: Final = JobOutcome(
    "SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods"
)
_SUSPENSION: Final = {"True": "Suspended", "False": "Resumed"}
_INDEX_VARIABLE: Final = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}},
}


class JobController:
    """The component ``job``."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.events.recorder("job-controller")
        self._caches = WorkloadCaches(context, JOBS, WORKLOAD_PODS, BATCH_SECONDS)
        self._pods = PodControl(context.client, self._recorder, self._caches.writes)
        self._backoffs: dict[str, PodBackoff] = {}
        self.controller = Controller("job", self._caches.queue, self._sync)

    async def run(self) -> None:
        """Reconcile Jobs until cancelled."""
        await self._caches.start()
        await self.controller.run()

    async def _sync(self, key: str) -> float | None:
        job = self._caches.current(key)
        await self._release_strays(key, job)
        if job is None or job.spec.managed_by != _MANAGER:
            self._backoffs.pop(key, None)
            return None
        if job.true_condition("Complete", "Failed"):
            self._backoffs.pop(key, None)
            return await self._expire(job)
        return await self._sync_job(job, await self._caches.claim(job))

    async def _release_strays(self, key: str, job: Job | None) -> None:
        """Remove the finalizer from the pods of a Job that is gone."""
        uid = job.metadata.uid if job else ""
        for pod in self._caches.named(key):
            controller = pod.metadata.controller
            if is_tracked(pod) and controller is not None and controller.uid != uid:
                await self._untrack(pod)

    async def _expire(self, job: Job) -> float | None:
        left, meta = seconds_until_expiry(job, self._clock.now_ns()), job.metadata
        if left is None or left > 0 or meta.deleting:
            return None if meta.deleting else left
        path = JOBS.resource.object(meta.name, meta.namespace)
        await self._client.delete(path, uid=meta.uid, propagation=Propagation.FOREGROUND)
        return None

    async def _sync_job(self, job: Job, found: Sequence[WorkloadPod]) -> float | None:
        now_ns, key = self._clock.now_ns(), job.metadata.key
        pods = observe_pods(job, found, None)
        outcome = find_outcome(pods, now_ns)
        if outcome is not None:
            pods = observe_pods(job, found, outcome)
        backoff = self._backoffs.get(key, PodBackoff()).after(
            len(pods.new_succeeded), len(pods.new_failed), now_ns
        )
        deleted, created = await self._manage(pods, outcome, backoff.seconds_left(now_ns))
        active = len(pods.active) - len(deleted) + created.successes
        if outcome is None and is_complete(pods, active):
            outcome = _COMPLETED
        status = new_status(pods, active, deleted, outcome, format_time(now_ns))
        if status != job.status:
            await self._caches.write_status(job, status, ("ready", "terminating"))
            self._record(job, status)
        self._backoffs[key] = backoff
        await self._remove_finalizers(pods, outcome)
        if created.error is not None:
            raise created.error
        waits = (seconds_until_deadline(job, now_ns), backoff.seconds_left(now_ns) or None)
        left = (each for each in waits if each is not None and outcome is None)
        return min(left, default=None)

    async def _manage(
        self, pods: JobPods, outcome: JobOutcome | None, backoff: float
    ) -> tuple[Sequence[WorkloadPod], SlowStartResult]:
        """Delete or create pods; return the deleted ones, and what came of the new ones."""
        job = pods.job
        if outcome is not None:
            for pod in pods.active:
                await self._pods.delete_if_present(job, pod.metadata.name)
            return pods.active, SlowStartResult(0)
        if job.metadata.deleting:
            return (), SlowStartResult(0)
        wanted = wanted_active(pods)
        surplus = surplus_pods(pods, wanted)[:BURST]
        for pod in surplus:
            await self._untrack(pod)
            await self._pods.delete_if_present(job, pod.metadata.name)
        missing = min(wanted - len(pods.active), BURST)
        if surplus or missing <= 0 or backoff > 0:
            return surplus, SlowStartResult(0)
        indexes = pending_indexes(pods)[:missing] if job.indexed else [None] * missing
        return (), await self._create(job, indexes)

    async def _create(self, job: Job, indexes: Sequence[int | None]) -> SlowStartResult:
        """Create a pod for each index."""
        left = iter(indexes)

        async def attempt() -> SyncError | None:
            pod = msgspec.json.encode(job_pod(job, next(left)))
            try:
                await self._pods.create(job, pod)
            except SYNC_ERRORS as error:
                return None if is_namespace_terminating(error) else error
            return None

        return await slow_start_batch(len(indexes), attempt)

    async def _remove_finalizers(self, pods: JobPods, outcome: JobOutcome | None) -> None:
        """Release the pods that are counted, or all of them if the Job ends."""
        ends = outcome is not None or pods.job.metadata.deleting
        named = {*(pods.uncounted.succeeded or ()), *(pods.uncounted.failed or ())}
        for pod in pods.tracked:
            succeeded = pod.status.phase == "Succeeded"
            if ends or succeeded or pod.metadata.uid in named:
                await self._untrack(pod)

    async def _untrack(self, pod: WorkloadPod) -> None:
        """Remove the finalizer from a pod that still exists."""
        if not is_tracked(pod):
            return
        meta = pod.metadata
        removed = {"$deleteFromPrimitiveList/finalizers": [TRACKING]}
        patch = {"metadata": {"uid": meta.uid, **removed}}
        try:
            await self._pods.patch(meta.namespace, meta.name, patch)
        except SYNC_ERRORS as error:
            if not has_status(error, 404, 422):
                raise

    def _record(self, job: Job, status: JobStatus) -> None:
        """Record an Event for each condition that has become true, or Suspended that has not."""
        for each in status.conditions:
            if each in job.status.conditions:
                continue
            if each.type == "Failed":
                self._recorder.warning(job.reference, each.reason, each.message)
            elif each.type == "Complete":
                self._recorder.normal(job.reference, "Completed", "Job completed")
            elif each.type == "Suspended":
                self._recorder.normal(job.reference, _SUSPENSION[each.status], each.message)


def job_pod(job: Job, index: int | None) -> dict[str, Any]:
    """Return a pod of a Job, with the completion index if it has one."""
    name, meta = job.metadata.name, job.spec.template.metadata
    finalizers = [*(meta.finalizers or ()), TRACKING]
    template = replace(job.spec.template, metadata=replace(meta, finalizers=finalizers))
    if index is None:
        return pod_document(job, template, {"generateName": f"{name}-"})
    text = str(index)
    template.metadata.annotations = {**(meta.annotations or {}), INDEX: text}
    spec: Fields = {**template.spec, "hostname": raw(f"{name}-{text}")}
    for field in spec.keys() & {"containers", "initContainers"}:
        containers = msgspec.json.decode(spec[field], type=list[Fields])
        spec[field] = raw([_with_index_variable(each) for each in containers])
    template = replace(template.with_label(INDEX, text), spec=spec)
    return pod_document(job, template, {"generateName": f"{name}-{text}-"})


def _with_index_variable(container: Fields) -> Fields:
    env = msgspec.json.decode(container.get("env", raw([])), type=list[Fields] | None) or []
    if any(each.get("name") == raw(_INDEX_VARIABLE["name"]) for each in env):
        return container
    return {**container, "env": raw([*env, _INDEX_VARIABLE])}
