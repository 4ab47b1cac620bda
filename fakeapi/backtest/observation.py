"""Observes a simulation: from the writes of its store and the Events of its components to figures.

Nothing is asked of the components, so that all policies are measured alike, and so is the real
kube-scheduler in a recording. What is observed of pods:

    created, bound           the queueing delay
    bound until it ends      what is allocated
    succeeded                the work is finished
    failed or deleted        the work since the last checkpoint is lost; with the condition
                             DisruptionTarget it is a disruption

An Event ``Preempted`` on a victim names the preemptor. Victims of one preemptor on one node, until
it is bound, are one decision.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct

from extender.kube.controller_runtime.event_correlator import ObjectReference
from extender.kube.decoders.object_meta import parse_time
from extender.kube.rest.clock import Clock
from fakeapi.apiserver.store.object_store import StoreEvent
from fakeapi.backtest.pod_work import SECOND_NS, PodWork, WorkByPod
from fakeapi.backtest.resource_use import ResourceUse, measured
from fakeapi.backtest.statistics import (
    Amounts,
    GroupStatistics,
    RunStatistics,
    SimulatedDecision,
    SimulatedVictim,
    costliest,
)

_PREEMPTED: Final = re.compile(r"Preempted by pod (\S+) on node (\S+)")


class _Moment(Struct):
    started_at: str = msgspec.field(name="startedAt", default="")
    finished_at: str = msgspec.field(name="finishedAt", default="")


class _ContainerState(Struct):
    running: _Moment | None = None
    terminated: _Moment | None = None


class _ContainerStatus(Struct):
    state: _ContainerState = msgspec.field(default_factory=_ContainerState)


class _Condition(Struct):
    type: str = ""
    status: str = ""


class _PodStatus(Struct):
    phase: str = ""
    conditions: list[_Condition] = []
    containers: list[_ContainerStatus] = msgspec.field(name="containerStatuses", default=[])


class _PodSpec(Struct):
    node_name: str = msgspec.field(name="nodeName", default="")


class _PodMeta(Struct):
    name: str
    namespace: str
    uid: str
    labels: dict[str, str] = {}


class _Pod(Struct):
    metadata: _PodMeta
    spec: _PodSpec
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


_decode_pod: Final = msgspec.json.Decoder(_Pod).decode


@dataclass(slots=True)
class _Attempt:
    """One pod of the API server, which works for a pod of a job until it has ended."""

    work: PodWork
    created_ns: int
    node: str = ""
    started_ns: int = 0
    ended: bool = False


@dataclass(slots=True)
class _Decision:
    """A preemption whose victims are still stopping; the amounts that they lost, by UID."""

    at_ns: int
    preemptor: PodWork
    node: str
    violations: int
    reason: str
    victims: dict[str, PodWork] = field(default_factory=dict)
    lost: dict[str, Amounts] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return len(self.lost) == len(self.victims)


ExplainDecision = Callable[[str], tuple[str, int]]
"""Returns what decided the latest preemption for a pod, by its UID, and its PDB violations."""


class RunObserver:
    """Observes one simulation until :meth:`finish`."""

    def __init__(
        self,
        clock: Clock,
        work: WorkByPod,
        use: ResourceUse,
        class_names: Mapping[int, str],
        explain: ExplainDecision,
    ) -> None:
        self._clock = clock
        self._work = work
        self._use = use
        self._explain = explain
        self._start_ns = clock.now_ns()
        self._statistics = RunStatistics()
        self._class_names = class_names
        self._attempts: dict[str, _Attempt] = {}
        self._deciding: dict[str, _Decision] = {}
        self._stopping: dict[str, _Decision] = {}
        self._decisions: list[SimulatedDecision] = []
        self._digest = sha256()
        self._failures = 0

    def submit(self, pods: list[PodWork]) -> None:
        """Record the pods of a submitted job."""
        for pod in pods:
            self._group(pod).submitted += 1
        self._use.add_shape(pods[0].job.requests, len(pods))

    def observe_write(self, event: StoreEvent | None) -> None:
        """Observe a write to the store."""
        if event is None or event.kind.resource != "pods":
            return
        pod = _decode_pod(event.entry.raw)
        attempt = self._attempts.get(pod.metadata.uid)
        if attempt is None:
            attempt = self._begin(pod)
            if attempt is None:
                return
        if pod.spec.node_name and not attempt.node:
            self._bind(pod, attempt)
        if pod.status.phase == "Succeeded":
            self._succeed(pod, attempt)
        elif pod.status.phase == "Failed" or event.type == "DELETED":
            self._stop(pod, attempt)
        elif not attempt.started_ns:
            attempt.started_ns = _started_ns(pod)
        if event.type == "DELETED":
            del self._attempts[pod.metadata.uid]

    def observe_event(self, involved: ObjectReference, reason: str, message: str) -> None:
        """Observe an Event of a component."""
        if reason == "FailedScheduling":
            self._failures += 1
        found = _PREEMPTED.fullmatch(message) if reason == "Preempted" else None
        if found is not None:
            self._preempt(found[1], found[2], involved.uid)

    def finish(self) -> RunStatistics:
        """Return the statistics of the simulation, which ends now."""
        now_ns = self._clock.now_ns()
        for attempt in self._attempts.values():
            if attempt.node and not attempt.ended:
                self._group(attempt.work).running += 1
                self._keep_running(attempt, now_ns)
        for work in self._work:
            if not work.finished:
                group = self._group(work)
                _add(group.kept, work.job.requests, work.kept_ns)
        for group in self._statistics.groups.values():
            group.pending = group.submitted - group.finished_pods - group.running
        for decision in {id(d): d for d in self._stopping.values()}.values():
            self._decisions.append(_decision(decision, self._start_ns))
        self._use.advance(now_ns)
        result = self._statistics
        result.duration_ns = now_ns - self._start_ns
        result.capacity, result.allocated = self._use.capacity(), self._use.allocated()
        result.fragmented = self._use.fragmented()
        result.refused = max(0, self._failures - result.preemptions)
        result.decisions = costliest(self._decisions)
        result.digest = self._digest.hexdigest()
        return result

    def _begin(self, pod: _Pod) -> _Attempt | None:
        work = self._work.find(pod.metadata.namespace, pod.metadata.labels)
        if work is None:
            return None
        attempt = self._attempts[pod.metadata.uid] = _Attempt(work, self._clock.now_ns())
        self._write_digest("created", work)
        return attempt

    def _bind(self, pod: _Pod, attempt: _Attempt) -> None:
        now_ns = self._clock.now_ns()
        attempt.node = pod.spec.node_name
        self._group(attempt.work).queueing.add(now_ns - attempt.created_ns)
        self._use.allocate(attempt.node, attempt.work.job.requests, now_ns)
        self._deciding.pop(pod.metadata.uid, None)
        self._write_digest("bound", attempt.work, attempt.node)

    def _succeed(self, pod: _Pod, attempt: _Attempt) -> None:
        if attempt.ended:
            return
        work, group = attempt.work, self._group(attempt.work)
        _add(group.done, work.job.requests, work.left_ns)
        _add(group.finished, work.job.requests, work.run_ns)
        group.finished_pods += 1
        work.finished = True
        self._end(pod, attempt, {})
        self._write_digest("finished", work, attempt.node)

    def _stop(self, pod: _Pod, attempt: _Attempt) -> None:
        if attempt.ended:
            return
        work, group = attempt.work, self._group(attempt.work)
        ran_ns = min(_ran_ns(pod, self._clock.now_ns()), work.left_ns)
        lost_ns = work.stop(ran_ns)
        _add(group.done, work.job.requests, ran_ns)
        _add(group.lost, work.job.requests, lost_ns)
        if any(c.type == "DisruptionTarget" and c.status == "True" for c in pod.status.conditions):
            group.disruptions += 1
            group.repeated += bool(work.disruptions)
            work.disruptions += 1
        lost: Amounts = {}
        _add(lost, work.job.requests, lost_ns)
        self._end(pod, attempt, lost)
        self._write_digest("stopped", work, attempt.node)

    def _end(self, pod: _Pod, attempt: _Attempt, lost: Amounts) -> None:
        """Release what a pod had, and complete the decision whose last victim it was."""
        attempt.ended = True
        if attempt.node:
            self._use.release(attempt.node, attempt.work.job.requests, self._clock.now_ns())
        decision = self._stopping.pop(pod.metadata.uid, None)
        if decision is not None:
            decision.lost[pod.metadata.uid] = lost
            if decision.is_complete:
                self._decisions.append(_decision(decision, self._start_ns))
                if len(self._decisions) > 10_000:
                    self._decisions = list(costliest(self._decisions))

    def _preempt(self, preemptor: str, node: str, victim: str) -> None:
        """Add a victim to the decision for a preemptor."""
        attempt, victims = self._attempts.get(preemptor), self._attempts.get(victim)
        if attempt is None or victims is None:
            return
        decision = self._deciding.get(preemptor)
        if decision is None or decision.node != node:
            reason, violations = self._explain(preemptor)
            decision = _Decision(self._clock.now_ns(), attempt.work, node, violations, reason)
            self._deciding[preemptor] = decision
            self._statistics.preemptions += 1
            self._statistics.violations += violations
            self._statistics.cascades += bool(attempt.work.disruptions)
            self._write_digest("preempts", attempt.work, node)
        decision.victims[victim] = victims.work
        if not victims.ended:
            self._stopping[victim] = decision
        else:
            decision.lost[victim] = {}

    def _keep_running(self, attempt: _Attempt, now_ns: int) -> None:
        """Count the work of a pod that still runs as done and kept."""
        if not attempt.started_ns:
            return
        work, group = attempt.work, self._group(attempt.work)
        ran_ns = min((now_ns - attempt.started_ns) // SECOND_NS * SECOND_NS, work.left_ns)
        _add(group.done, work.job.requests, ran_ns)
        _add(group.kept, work.job.requests, ran_ns)

    def _group(self, work: PodWork) -> GroupStatistics:
        name = self._class_names[work.job.priority]
        return self._statistics.groups.setdefault(f"{work.job.tenant}/{name}", GroupStatistics())

    def _write_digest(self, what: str, work: PodWork, node: str = "") -> None:
        line = f"{self._clock.now_ns()} {what} {work.job.tenant}/{work.name} {node}\n"
        self._digest.update(line.encode())


def _started_ns(pod: _Pod) -> int:
    """Return when the container of a pod started; 0 if it has not."""
    for container in pod.status.containers:
        moment = container.state.running or container.state.terminated
        if moment is not None and moment.started_at:
            return parse_time(moment.started_at)
    return 0


def _ran_ns(pod: _Pod, now_ns: int) -> int:
    """Return how long the container of a pod ran, in whole seconds."""
    started_ns = _started_ns(pod)
    if not started_ns:
        return 0
    ended = [c.state.terminated for c in pod.status.containers if c.state.terminated is not None]
    until_ns = parse_time(ended[0].finished_at) if ended else now_ns
    return max(0, until_ns - started_ns) // SECOND_NS * SECOND_NS


def _decision(decision: _Decision, start_ns: int) -> SimulatedDecision:
    preemptor = decision.preemptor
    return SimulatedDecision(
        decision.at_ns - start_ns,
        preemptor.name,
        preemptor.job.tenant,
        preemptor.job.priority,
        decision.node,
        tuple(
            SimulatedVictim(
                work.name, work.job.tenant, work.job.priority, decision.lost.get(uid, {})
            )
            for uid, work in decision.victims.items()
        ),
        decision.violations,
        decision.reason,
    )


def _add(total: Amounts, requests: Mapping[str, int], duration_ns: int) -> None:
    """Add requests times a duration, in resource-seconds."""
    seconds = duration_ns // SECOND_NS
    for name, amount in measured(requests).items():
        total[name] = total.get(name, 0) + amount * seconds
