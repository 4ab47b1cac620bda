"""The work of a job's pods: what is done, kept and lost when pods are stopped and start again.

A pod of a job keeps its identity, its completion index, over all of its replacements: a replacement
goes on from the last checkpoint. How long a replacement runs is therefore known only when it is
created, so this module is also the simulation script of the kubelets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from fakeapi.backtest.simulation.observed_pod import ObservedPod
from fakeapi.backtest.traces.trace import TraceJob
from fakeapi.controlplane.kubelet.scripts import (
    ContainerScript,
    Exit,
    Labels,
    PodScript,
    Run,
    SimulationScript,
    Stop,
)
from fakeapi.controlplane.workloads.job_status import INDEX

JOB_NAME: Final = "batch.kubernetes.io/job-name"
SECOND_NS: Final = 10**9
_TERMINATED: Final = 143
"""The exit code of a process that ends by SIGTERM."""


@dataclass(slots=True)
class PodWork:
    """One pod of a job: the work that it has kept, and how often it was stopped.

    ``run_ns`` is all of its work, None if it is not known how long the pod will run.
    ``checkpoint_ns`` is the work between two checkpoints. Both are whole seconds, since the times
    in the status of a pod are. ``replacement`` is the name of the latest pod that works, and
    ``started_with_ns`` the work that was left when it was created.
    """

    job: TraceJob
    index: int
    run_ns: int | None
    checkpoint_ns: int | None
    kept_ns: int = 0
    disruptions: int = 0
    finished: bool = False
    submitted: bool = False
    replacement: str = ""
    started_with_ns: int = 0

    @property
    def name(self) -> str:
        """The name of the job, and the index of a pod among several."""
        return self.job.name if self.job.pods == 1 else f"{self.job.name}-{self.index}"

    def is_finished_by(self, ran_ns: int, phase: str, *, is_disrupted: bool) -> bool:
        """Return whether a pod that has ended in a phase, after it ran for a time, did its work.

        A pod that receives a signal to stop may end as if it had succeeded. Without a known amount
        of work, a pod that is not disrupted has done it.
        """
        if self.run_ns is None:
            return not is_disrupted
        return phase == "Succeeded" and (not is_disrupted or self.kept_ns + ran_ns >= self.run_ns)

    def finish(self, ran_ns: int) -> int:
        """Record that a container has finished after a time; return the work that it did."""
        did_ns = ran_ns if self.run_ns is None else self.run_ns - self.kept_ns
        self.kept_ns += did_ns
        self.finished = True
        return did_ns

    def stop(self, ran_ns: int) -> int:
        """Record that a container was stopped after a time; return how much of it is lost."""
        reached = self.kept_ns + ran_ns
        self.kept_ns = self._kept_after(reached)
        return reached - self.kept_ns

    def cut(self, ran_ns: int) -> int:
        """Return the work of a container that ran for a time, as its status says."""
        return ran_ns if self.run_ns is None else min(ran_ns, self.run_ns - self.kept_ns)

    def work_of(self, pod: str) -> int:
        """Return the work, in nanoseconds, that was left when a pod was created, by its name."""
        if pod != self.replacement and self.run_ns is not None:
            self.replacement, self.started_with_ns = pod, self.run_ns - self.kept_ns
        return self.started_with_ns

    def _kept_after(self, reached_ns: int) -> int:
        every = self.checkpoint_ns
        if every is None:
            return self.kept_ns
        checkpoint = reached_ns - reached_ns % every if every else reached_ns
        return max(self.kept_ns, checkpoint)


class WorkByPod:
    """The pods of all jobs that have not finished."""

    def __init__(self) -> None:
        self._by_job: dict[tuple[str, str], dict[str, PodWork]] = {}

    def add(self, job: TraceJob) -> list[PodWork]:
        """Add the pods of a job."""
        run_ns = max(SECOND_NS, _whole_seconds(job.run_ns))
        every = job.checkpoint_ns and _whole_seconds(job.checkpoint_ns)
        pods = [PodWork(job, index, run_ns, every) for index in range(job.pods)]
        self._by_job[job.tenant, job.name] = {str(pod.index): pod for pod in pods}
        return pods

    def remove(self, namespace: str, job: str) -> None:
        """Remove a job."""
        self._by_job.pop((namespace, job), None)

    def find(self, namespace: str, labels: Labels | None) -> PodWork | None:
        """Return the work of the pod that has these labels; None if it is of no known job."""
        labels = labels or {}
        pods = self._by_job.get((namespace, labels.get(JOB_NAME, "")), {})
        return pods.get(labels.get(INDEX, ""))

    def begin(self, pod: ObservedPod, raw: bytes) -> PodWork | None:  # noqa: ARG002
        """Return the work of a new pod; None if it is of no known job."""
        return self.find(pod.metadata.namespace, pod.metadata.labels)

    def __len__(self) -> int:
        return len(self._by_job)

    def unfinished(self) -> Iterator[PodWork]:
        """Yield the pods that have work left."""
        for pods in self._by_job.values():
            yield from (pod for pod in pods.values() if not pod.finished)


@dataclass(frozen=True, slots=True)
class WorkScript(SimulationScript):
    """The script by which kubelets run each pod for as long as it has work left.

    A trace does not tell the usage of its pods, so none is evicted for it.
    """

    work: WorkByPod = field(default_factory=WorkByPod)
    events: bool = False
    evictions: bool = False

    def for_pod(
        self,
        name: str,
        namespace: str,
        node: str,  # noqa: ARG002
        labels: Labels | None,
    ) -> PodScript:
        """Return the script of a pod: it exits when its work is done."""
        pod = self.work.find(namespace, labels)
        # A pod of a finished job is about to be deleted.
        left = pod.work_of(name) if pod is not None else SECOND_NS
        runs = (Run(exit=Exit(after=left)),)
        return PodScript(default=ContainerScript(runs, Stop(after=SECOND_NS, code=_TERMINATED)))


def _whole_seconds(duration_ns: int) -> int:
    return -(-duration_ns // SECOND_NS) * SECOND_NS
