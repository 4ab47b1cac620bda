"""What a Job does next, and its status, calculated from its pods.

A pod is counted once, although the status and the pod are written one after the other: the status
names the UID of a pod that has finished, then the pod loses its finalizer, then the UID is dropped
and the counter goes up.

    finished pod     with finalizer      named in uncountedTerminatedPods
                     without it          counted in succeeded or failed

Left out: podFailurePolicy, successPolicy, backoffLimitPerIndex, podReplacementPolicy Failed.

Source: kubernetes/pkg/controller/job (job_controller.go, indexed_job_utils.go, backoff_utils.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Final

from msgspec import Struct, field
from msgspec.structs import replace

from extender.kube.decoders.object_meta import NS_PER_SECOND, parse_time
from extender.kube.rest.resources import Resource
from fakeapi.controlplane.controllers.types import decode_tolerantly
from fakeapi.controlplane.workloads.types import (
    Conditions,
    ObjectKind,
    Workload,
    WorkloadCondition,
    WorkloadPod,
    WorkloadSpec,
    get_condition,
    raw,
    removal_order,
)

TRACKING: Final = "batch.kubernetes.io/job-tracking"
INDEX: Final = "batch.kubernetes.io/job-completion-index"

_BACKOFF_SECONDS: Final = 10.0
_MAX_BACKOFF_SECONDS: Final = 600.0


class JobSpec(WorkloadSpec, rename="camel"):
    """batch/v1.JobSpec."""

    parallelism: int = 1
    completions: int | None = None
    backoff_limit: int = 6
    suspend: bool = False
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    completion_mode: str = "NonIndexed"
    managed_by: str = "kubernetes.io/job-controller"


class UncountedTerminatedPods(Struct, frozen=True):
    """batch/v1.UncountedTerminatedPods."""

    succeeded: tuple[str, ...] | None = None
    failed: tuple[str, ...] | None = None


class JobStatus(Struct, rename="camel", frozen=True):
    """batch/v1.JobStatus."""

    active: int = 0
    ready: int | None = None
    terminating: int | None = None
    succeeded: int = 0
    failed: int = 0
    completed_indexes: str = ""
    start_time: str | None = None
    completion_time: str | None = None
    conditions: Conditions = ()
    uncounted_terminated_pods: UncountedTerminatedPods | None = None


class Job(Workload):
    """batch/v1.Job."""

    KIND: ClassVar[str] = "Job"
    API_VERSION: ClassVar[str] = "batch/v1"

    spec: JobSpec = field(default_factory=JobSpec)
    status: JobStatus = field(default_factory=JobStatus)

    @property
    def indexed(self) -> bool:
        """Whether each pod has a completion index."""
        return self.spec.completion_mode == "Indexed"

    def true_condition(self, *types: str) -> WorkloadCondition | None:
        """Return the first condition of some types that is true, or None."""
        found = (get_condition(self.status.conditions, type_) for type_ in types)
        return next((each for each in found if each is not None and each.status == "True"), None)


JOBS: Final = ObjectKind(
    "Job", Resource("batch", "v1", "jobs", namespaced=True), decode_tolerantly(Job)
)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """How a Job ends: ``type`` is SuccessCriteriaMet or FailureTarget."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodBackoff:
    """The failures of a Job since its last success, and the time of the last one."""

    failures: int = 0
    last_ns: int = 0

    def after(self, succeeded: int, failed: int, now_ns: int) -> PodBackoff:
        """Return the backoff after pods have finished; a success resets it."""
        if succeeded:
            return PodBackoff()
        return PodBackoff(self.failures + failed, now_ns) if failed else self

    def seconds_left(self, now_ns: int) -> float:
        """Return the seconds until another pod may be created."""
        if not self.failures:
            return 0.0
        wait = min(_BACKOFF_SECONDS * 2.0 ** min(self.failures - 1, 10), _MAX_BACKOFF_SECONDS)
        return max(0.0, wait - (now_ns - self.last_ns) / NS_PER_SECOND)


@dataclass(frozen=True, slots=True)
class JobPods:
    """A Job and its pods; ``uncounted`` are the UIDs that the status names or will name."""

    job: Job
    active: Sequence[WorkloadPod]
    terminating: int
    tracked: Sequence[WorkloadPod]
    new_succeeded: Sequence[WorkloadPod]
    new_failed: Sequence[WorkloadPod]
    uncounted: UncountedTerminatedPods
    succeeded: int
    failed: int
    indexes: frozenset[int]
    restarts: int

    @property
    def total_failed(self) -> int:
        """The number of failed pods, counted or not."""
        return self.failed + len(self.uncounted.failed or ())

    @property
    def total_succeeded(self) -> int:
        """The number of succeeded pods or indexes, counted or not."""
        if self.job.indexed:
            return len(self.indexes)
        return self.succeeded + len(self.uncounted.succeeded or ())


def observe_pods(job: Job, pods: Sequence[WorkloadPod], ending: JobOutcome | None) -> JobPods:
    """Return the pods of a Job, counted; all pods of a Job that fails count as failed."""
    status = job.status
    before = status.uncounted_terminated_pods or UncountedTerminatedPods()
    named = {*(before.succeeded or ()), *(before.failed or ())}
    tracked = [pod for pod in pods if is_tracked(pod)]
    held = {pod.metadata.uid for pod in tracked}
    new = [pod for pod in tracked if pod.metadata.uid not in named and _has_index(job, pod)]
    succeeded = [pod for pod in new if pod.status.phase == "Succeeded"]
    fails = ending is not None and ending.type == "FailureTarget"
    failed = [pod for pod in new if pod not in succeeded and (fails or _has_failed(pod))]
    unfinished = [pod for pod in pods if not pod.finished]
    done = {completion_index(pod) for pod in succeeded} - {None}
    return JobPods(
        job=job,
        active=[pod for pod in unfinished if not pod.metadata.deleting],
        terminating=sum(pod.metadata.deleting for pod in unfinished),
        tracked=tracked,
        new_succeeded=succeeded,
        new_failed=failed,
        uncounted=UncountedTerminatedPods(
            _uids(before.succeeded, held, () if job.indexed else succeeded),
            _uids(before.failed, held, failed),
        ),
        succeeded=status.succeeded + sum(uid not in held for uid in before.succeeded or ()),
        failed=status.failed + sum(uid not in held for uid in before.failed or ()),
        indexes=parse_indexes(status.completed_indexes)
        | {each for each in done if each is not None},
        restarts=sum(each.restart_count for pod in unfinished for each in pod.container_statuses),
    )


def _uids(
    before: Iterable[str] | None, held: set[str], new: Iterable[WorkloadPod]
) -> tuple[str, ...] | None:
    kept = (uid for uid in before or () if uid in held)
    return (*kept, *(pod.metadata.uid for pod in new)) or None


def is_tracked(pod: WorkloadPod) -> bool:
    """Return whether a pod has the finalizer of Jobs."""
    return TRACKING in (pod.metadata.finalizers or ())


def completion_index(pod: WorkloadPod) -> int | None:
    """Return the completion index of a pod, or None."""
    text = (pod.metadata.annotations or {}).get(INDEX, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _has_index(job: Job, pod: WorkloadPod) -> bool:
    index = completion_index(pod)
    return not job.indexed or (index is not None and index < (job.spec.completions or 0))


def _has_failed(pod: WorkloadPod) -> bool:
    return pod.status.phase == "Failed" or pod.metadata.deleting


def find_outcome(pods: JobPods, now_ns: int) -> JobOutcome | None:
    """Return how a Job ends that has ended already, or has failed; None if it goes on."""
    job = pods.job
    if decided := job.true_condition("SuccessCriteriaMet", "FailureTarget"):
        return JobOutcome(decided.type, decided.reason, decided.message)
    limit, restarts = job.spec.backoff_limit, pods.restarts
    restarting = job.spec.template.spec.get("restartPolicy") == raw("OnFailure")
    if pods.total_failed > limit or (restarting and restarts >= max(limit, 1)):
        message = "Job has reached the specified backoff limit"
        return JobOutcome("FailureTarget", "BackoffLimitExceeded", message)
    left = seconds_until_deadline(job, now_ns)
    if left is not None and left <= 0:
        message = "Job was active longer than specified deadline"
        return JobOutcome("FailureTarget", "DeadlineExceeded", message)
    return None


def seconds_until_deadline(job: Job, now_ns: int) -> float | None:
    """Return the seconds until activeDeadlineSeconds are over; None without a deadline."""
    seconds = job.spec.active_deadline_seconds
    if seconds is None or job.spec.suspend:
        return None
    started = parse_time(job.status.start_time) if job.status.start_time else now_ns
    return seconds - (now_ns - started) / NS_PER_SECOND


def seconds_until_expiry(job: Job, now_ns: int) -> float | None:
    """Return the seconds until a finished Job is deleted; None without a time to live."""
    finished, ttl = job.true_condition("Complete", "Failed"), job.spec.ttl_seconds_after_finished
    if finished is None or ttl is None:
        return None
    return ttl - (now_ns - parse_time(finished.last_transition_time)) / NS_PER_SECOND


def wanted_active(pods: JobPods) -> int:
    """Return how many pods should be active."""
    spec, succeeded = pods.job.spec, pods.total_succeeded
    if spec.suspend:
        return 0
    if spec.completions is None:
        return len(pods.active) if succeeded else spec.parallelism
    return max(0, min(spec.completions - succeeded, spec.parallelism))


def surplus_pods(pods: JobPods, wanted: int) -> Sequence[WorkloadPod]:
    """Return the active pods to delete: those of repeated indexes, then those that ran least."""
    ordered = sorted(pods.active, key=removal_order)
    surplus: list[WorkloadPod] = []
    if pods.job.indexed:
        last = {completion_index(pod): pod for pod in ordered if _has_index(pods.job, pod)}
        surplus = [pod for pod in ordered if last.get(completion_index(pod)) is not pod]
    left = [pod for pod in ordered if pod not in surplus]
    return [*surplus, *left[: max(0, len(ordered) - wanted - len(surplus))]]


def pending_indexes(pods: JobPods) -> Sequence[int]:
    """Return the indexes that are neither completed nor have an active pod, in order."""
    active = {completion_index(pod) for pod in pods.active}
    indexes = range(pods.job.spec.completions or 0)
    return [each for each in indexes if each not in active and each not in pods.indexes]


def is_complete(pods: JobPods, active: int) -> bool:
    """Return whether as many pods have succeeded as the Job asks for, and none is active."""
    completions, succeeded = pods.job.spec.completions, pods.total_succeeded
    enough = succeeded > 0 if completions is None else succeeded >= completions
    return enough and active == 0


def new_status(
    pods: JobPods, active: int, deleted: Sequence[WorkloadPod], outcome: JobOutcome | None, now: str
) -> JobStatus:
    """Return the status after pods were created and deleted."""
    job, old = pods.job, pods.job.status
    terminating = pods.terminating + len(deleted)
    ready = [pod for pod in pods.active if pod.ready and pod not in deleted]
    status = replace(
        old,
        active=active,
        ready=len(ready),
        terminating=terminating,
        succeeded=len(pods.indexes) if job.indexed else pods.succeeded,
        failed=pods.failed,
        completed_indexes=format_indexes(pods.indexes) if job.indexed else "",
        start_time=old.start_time or (None if job.spec.suspend else now),
        uncounted_terminated_pods=pods.uncounted,
    )
    if outcome is None:
        return _suspended_or_resumed(job, status, now)
    conditions = _with(status.conditions, outcome.type, "True", outcome, now)
    if not (terminating or pods.uncounted.succeeded or pods.uncounted.failed):
        type_ = "Complete" if outcome.type == "SuccessCriteriaMet" else "Failed"
        conditions = _with(conditions, type_, "True", outcome, now)
        if type_ == "Complete":
            status = replace(status, completion_time=now)
    return replace(status, conditions=conditions)


def _suspended_or_resumed(job: Job, status: JobStatus, now: str) -> JobStatus:
    found, suspend = get_condition(status.conditions, "Suspended"), job.spec.suspend
    if suspend and (found is None or found.status != "True"):
        what = JobOutcome("Suspended", "JobSuspended", "Job suspended")
        conditions = _with(status.conditions, "Suspended", "True", what, now)
        return replace(status, conditions=conditions, start_time=None)
    if not suspend and found is not None and found.status == "True":
        what = JobOutcome("Suspended", "JobResumed", "Job resumed")
        conditions = _with(status.conditions, "Suspended", "False", what, now)
        return replace(status, conditions=conditions, start_time=now)
    return status


def _with(conditions: Conditions, type_: str, status: str, why: JobOutcome, now: str) -> Conditions:
    """Return the conditions with one set, in its former place; an equal one is kept."""
    old = get_condition(conditions, type_)
    if old is not None and (old.status, old.reason) == (status, why.reason):
        return conditions
    made = WorkloadCondition(
        type_, status, why.reason, why.message, last_probe_time=now, last_transition_time=now
    )
    if old is None:
        return (*conditions, made)
    return tuple(made if each is old else each for each in conditions)


def parse_indexes(text: str) -> frozenset[int]:
    """Return the indexes in a text such as ``0-2,5``."""
    spans = (span.split("-") for span in text.split(",") if span)
    return frozenset(each for span in spans for each in range(int(span[0]), int(span[-1]) + 1))


def format_indexes(indexes: Iterable[int]) -> str:
    """Return indexes as a text such as ``0-2,5``."""
    ordered = list(enumerate(sorted(indexes)))
    runs = [[i for _, i in run] for _, run in groupby(ordered, lambda pair: pair[1] - pair[0])]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
