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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, Protocol

import msgspec

from extender.kube.controller_runtime.event_correlator import ObjectReference
from extender.kube.decoders.cluster_objects import decode_budget, decode_node
from extender.kube.rest.clock import Clock
from fakeapi.apiserver.store.object_store import StoreEvent
from fakeapi.backtest.simulation.observed_pod import ObservedPod, decode_observed_pod
from fakeapi.backtest.simulation.pod_work import SECOND_NS, PodWork
from fakeapi.backtest.simulation.resource_use import ResourceUse, amounts_of, measured
from fakeapi.backtest.statistics import (
    Amounts,
    GroupStatistics,
    RunStatistics,
    SimulatedDecision,
    SimulatedVictim,
    costliest,
)
from policies.kubernetes.snapshot import DisruptionBudget

_ENDED: Final = ("Succeeded", "Failed")
_PREEMPTED: Final = re.compile(r"Preempted by pod (\S+) on node (\S+)")


@dataclass(slots=True)
class _Attempt:
    """One pod of the API server, which works for a pod of a job until it has ended."""

    work: PodWork
    created_ns: int
    namespace: str
    labels: Mapping[str, str]
    node: str = ""
    started_ns: int = 0
    ended: bool = False


@dataclass(slots=True)
class _Decision:
    """A preemption whose victims are still stopping; the amounts that they lost, by UID."""

    at_ns: int
    preemptor: PodWork
    node: str
    reason: str
    violations: int = 0
    victims: dict[str, PodWork] = field(default_factory=dict)
    lost: dict[str, Amounts] = field(default_factory=dict)
    disruptions_left: dict[str, int] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return len(self.lost) == len(self.victims)


ExplainDecision = Callable[[str], str]
"""Returns what decided the latest preemption for a pod, by its UID, in words."""


class WorkSource(Protocol):
    """The work of pods."""

    def begin(self, pod: ObservedPod, raw: bytes) -> PodWork | None:
        """Return the work of a new pod, with its JSON; None if it does not count."""
        ...

    def unfinished(self) -> Iterable[PodWork]:
        """Return the pods that have work left."""
        ...


class RunObserver:
    """Observes one simulation until :meth:`finish`."""

    def __init__(
        self,
        clock: Clock,
        work: WorkSource,
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
        self._budgets: dict[str, DisruptionBudget] = {}
        self._digest = sha256()
        self._failures = 0

    def submit(self, pods: list[PodWork]) -> None:
        """Record the pods of a submitted job."""
        for pod in pods:
            pod.submitted = True
            self._group(pod).submitted += 1
        self._use.add_shape(pods[0].job.requests, len(pods))

    def observe_write(self, event: StoreEvent | None) -> None:
        """Observe a write to the store."""
        if event is None:
            return
        if event.kind.kind == "Node":
            self._observe_node(event)
        elif event.kind.kind == "Pod":
            self._observe_pod(event)
        elif event.kind.kind == "PodDisruptionBudget":
            self._budgets.pop(event.entry.key, None)
            if event.type != "DELETED":
                self._budgets[event.entry.key] = decode_budget(msgspec.Raw(event.entry.raw))

    def _observe_node(self, event: StoreEvent) -> None:
        node = decode_node(msgspec.Raw(event.entry.raw))
        is_gone = event.type == "DELETED"
        amounts = {} if is_gone else amounts_of(node.allocatable)
        self._use.set_node(node.name, amounts, self._clock.now_ns())

    def _observe_pod(self, event: StoreEvent) -> None:
        pod = decode_observed_pod(event.entry.raw)
        attempt = self._attempts.get(pod.metadata.uid)
        if attempt is None:
            attempt = self._begin(pod, event.entry.raw)
            if attempt is None:
                return
        if pod.spec.node_name and not attempt.node:
            self._bind(pod, attempt)
        if pod.status.phase in _ENDED or event.type == "DELETED":
            self._end(pod, attempt)
        elif not attempt.started_ns:
            attempt.started_ns = pod.started_ns
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
        for work in self._work.unfinished():
            _add(self._group(work).kept, work.job.requests, work.kept_ns)
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

    def _begin(self, pod: ObservedPod, raw: bytes) -> _Attempt | None:
        meta = pod.metadata
        work = self._work.begin(pod, raw)
        if work is None:
            return None
        if not work.submitted:
            self.submit([work])
        attempt = _Attempt(work, self._clock.now_ns(), meta.namespace, meta.labels)
        self._attempts[meta.uid] = attempt
        self._write_digest("created", work)
        return attempt

    def _bind(self, pod: ObservedPod, attempt: _Attempt) -> None:
        now_ns = self._clock.now_ns()
        attempt.node = pod.spec.node_name
        self._group(attempt.work).queueing.add(now_ns - attempt.created_ns)
        self._use.allocate(attempt.node, attempt.work.job.requests, now_ns)
        self._deciding.pop(pod.metadata.uid, None)
        self._write_digest("bound", attempt.work, attempt.node)

    def _end(self, pod: ObservedPod, attempt: _Attempt) -> None:
        if attempt.ended:
            return
        work, ran_ns = attempt.work, pod.ran_ns(self._clock.now_ns())
        if work.is_finished_by(ran_ns, pod.status.phase, is_disrupted=pod.is_disrupted):
            self._finish(pod, attempt, ran_ns)
        else:
            self._stop(pod, attempt, ran_ns)

    def _finish(self, pod: ObservedPod, attempt: _Attempt, ran_ns: int) -> None:
        work, group = attempt.work, self._group(attempt.work)
        did_ns = work.finish(ran_ns)
        _add(group.done, work.job.requests, did_ns)
        _add(group.finished, work.job.requests, work.kept_ns)
        group.finished_pods += 1
        self._release(pod, attempt, {})
        self._write_digest("finished", work, attempt.node)

    def _stop(self, pod: ObservedPod, attempt: _Attempt, ran_ns: int) -> None:
        work, group = attempt.work, self._group(attempt.work)
        ran_ns = work.cut(ran_ns)
        lost_ns = work.stop(ran_ns)
        _add(group.done, work.job.requests, ran_ns)
        _add(group.lost, work.job.requests, lost_ns)
        if pod.is_disrupted:
            group.disruptions += 1
            group.repeated += bool(work.disruptions)
            work.disruptions += 1
        lost: Amounts = {}
        _add(lost, work.job.requests, lost_ns)
        self._release(pod, attempt, lost)
        self._write_digest("stopped", work, attempt.node)

    def _release(self, pod: ObservedPod, attempt: _Attempt, lost: Amounts) -> None:
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
        attempt, stopped = self._attempts.get(preemptor), self._attempts.get(victim)
        if attempt is None or stopped is None:
            return
        decision = self._deciding.get(preemptor)
        if decision is None or decision.node != node:
            reason = self._explain(preemptor)
            decision = _Decision(self._clock.now_ns(), attempt.work, node, reason)
            self._deciding[preemptor] = decision
            self._statistics.preemptions += 1
            self._statistics.cascades += bool(attempt.work.disruptions)
            self._write_digest("preempts", attempt.work, node)
        decision.victims[victim] = stopped.work
        if self._violates(stopped, decision.disruptions_left):
            decision.violations += 1
            self._statistics.violations += 1
        if not stopped.ended:
            self._stopping[victim] = decision
        else:
            decision.lost[victim] = {}

    def _violates(self, victim: _Attempt, left: dict[str, int]) -> bool:
        """Count a victim against its budgets, as far as a decision has left them any disruption."""
        violates = False
        for key, budget in self._budgets.items():
            selector = budget.selector
            if (
                budget.namespace == victim.namespace
                and selector
                and selector.matches(victim.labels)
            ):
                left[key] = left.get(key, budget.allowed) - 1
                violates |= left[key] < 0
        return violates

    def _keep_running(self, attempt: _Attempt, now_ns: int) -> None:
        """Count the work of a pod that still runs as done and kept."""
        if not attempt.started_ns:
            return
        work, group = attempt.work, self._group(attempt.work)
        ran_ns = work.cut((now_ns - attempt.started_ns) // SECOND_NS * SECOND_NS)
        _add(group.done, work.job.requests, ran_ns)
        _add(group.kept, work.job.requests, ran_ns)

    def _group(self, work: PodWork) -> GroupStatistics:
        name = self._class_names.get(work.job.priority, f"priority-{work.job.priority}")
        return self._statistics.groups.setdefault(f"{work.job.tenant}/{name}", GroupStatistics())

    def _write_digest(self, what: str, work: PodWork, node: str = "") -> None:
        line = f"{self._clock.now_ns()} {what} {work.job.tenant}/{work.name} {node}\n"
        self._digest.update(line.encode())


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
