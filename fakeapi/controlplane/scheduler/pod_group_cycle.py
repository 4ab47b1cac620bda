"""The scheduling cycle of a pod group: all members are placed and bound, or none.

    not all members alike                  an error for all of them
    an extender's filter fails             an error for all of them; no preemption
    enough members fit, one is new         these are bound, the others fail one by one
    otherwise                              the group preempts over the whole cluster: it is placed
                                           again with all its possible victims removed, and units
                                           beside which that placement still fits are reprieved

A member is placed with those before it on their nodes, in memory only. Extenders filter and score
nodes for it in both passes; no extender is asked about the victims. While victims of an earlier
preemption terminate on the nominated nodes, the group keeps its nominations and waits.

Sources: pkg/scheduler/schedule_one_podgroup.go, framework/preemption/podgrouppreemption.go, v1.37.0
(:mod:`policies.preemption.pod_group_cycle`, :mod:`policies.preemption.pod_group_preemption`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fakeapi.controlplane.scheduler.cache import CachedPod
from fakeapi.controlplane.scheduler.feasible_nodes import (
    FeasibleNodes,
    PodAttempt,
    SchedulingInputs,
)
from fakeapi.controlplane.scheduler.preemption import Preemption
from fakeapi.controlplane.scheduler.schedule_one import (
    RETRY_AFTER_BACKOFF,
    SCHEDULER_ERROR,
    UNSCHEDULABLE,
    ScheduledPod,
    SchedulingCycle,
    UnschedulablePod,
    no_fit,
)
from fakeapi.controlplane.scheduler.scheduling_queue import ALL_EVENTS, AwaitedEvents
from fakeapi.controlplane.scheduler.status_writer import SCHEDULED, Nomination
from policies.kubernetes.pod_groups import PodGroup
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.filtering.status import Rejection
from policies.preemption.pod_group_cycle import PodGroupProgress, queue_order, validation_error
from policies.preemption.pod_group_preemption import (
    PodGroupPreemptor,
    is_preemption_ongoing,
    pod_group_ineligibility,
    start_dry_run,
    without_nominations,
)
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.victim_units import units_for_pod_groups

_PREFIX: Final = "pod group preemption: "
_AFTER_CLAIMS: Final = "deallocation and deletion of ResourceClaims completed"
"""The result of the PodGroupPostFilter of DynamicResources, which runs first."""
_UNSCHEDULABLE: Final = "pod group is unschedulable"
_NO_NOMINATION: Final = Nomination(None)
_OTHER_FAILED: Final = "failed to schedule other pod from a pod group: "
_PREEMPTION_FAILED: Final = f'error in "DefaultPreemption" PodGroupPostFilter plugins: {_PREFIX}'


@dataclass(frozen=True, slots=True)
class PodGroupAttempt:
    """A group that is being scheduled, and its pending members in the order of the queue."""

    group: PodGroup
    members: Sequence[PodAttempt]
    snapshot: Snapshot

    @property
    def preemptor(self) -> PodGroupPreemptor:
        """The group and its members as preemption reads them."""
        return PodGroupPreemptor(self.group, tuple(member.pod for member in self.members))


@dataclass(frozen=True, slots=True)
class PodGroupOutcome:
    """The decision about each member, by UID, and the condition of the group.

    ``reason`` is that of the condition; only with SCHEDULED are members bound. ``victims`` are to
    be evicted.
    """

    members: Mapping[str, ScheduledPod | UnschedulablePod]
    reason: str
    message: str
    awaited: AwaitedEvents = ALL_EVENTS
    victims: tuple[Pod, ...] = ()


@dataclass(frozen=True, slots=True)
class _Simulation:
    """The members that were tried, by UID, and how far the group came."""

    progress: PodGroupProgress
    tried: Mapping[str, ScheduledPod | UnschedulablePod] = field(default_factory=dict)
    error: str = ""

    @property
    def placement(self) -> Mapping[str, str]:
        """The nodes of the members that are placed."""
        return {
            uid: found.node for uid, found in self.tried.items() if isinstance(found, ScheduledPod)
        }

    @property
    def fits(self) -> bool:
        """Whether the group has enough members with nodes, and one of them is new."""
        return self.progress.is_satisfied and bool(self.placement)

    @property
    def failure(self) -> str:
        """Why the group does not fit."""
        if self.progress.is_hopeless and self.tried:
            return str(self.progress)
        return ", ".join(filter(None, (_UNSCHEDULABLE, str(self.progress))))


@dataclass(frozen=True, slots=True)
class _PreemptionResult:
    """The message of a group's preemption; with ``nominations``, by UID, the group waits for it."""

    message: str
    nominations: Mapping[str, str | None] | None = None
    victims: tuple[Pod, ...] = ()
    is_error: bool = False


def complete_pod_group(
    waiting: Sequence[tuple[CachedPod, Pod]],
    inputs: Mapping[str, SchedulingInputs],
    snapshot: Snapshot,
) -> PodGroupAttempt | None:
    """Return an attempt for the waiting members of a group, None if some are missing or gated.

    ``inputs`` are those of each profile; members of other schedulers only count.
    """
    _, first = waiting[0]
    key = f"{first.namespace}/{first.group}"
    group = snapshot.pod_groups.groups.get(key)
    present = len(waiting) + len(snapshot.group_members.get(key, ()))
    if group is None or present < group.min_count or any(cached.gates for cached, _ in waiting):
        return None
    members = {
        pod.uid: PodAttempt(cached, pod, inputs[cached.scheduler], snapshot)
        for cached, pod in waiting
        if cached.scheduler in inputs and not pod.terminating
    }
    order = queue_order(member.pod for member in members.values())
    return PodGroupAttempt(group, [members[pod.uid] for pod in order], snapshot) if order else None


def preemption_for_group(attempt: PodGroupAttempt, outcome: PodGroupOutcome) -> Preemption:
    """Return the preemption for a group; it clears no nominations."""
    scheduler, uid = attempt.members[0].cached.scheduler, attempt.group.uid
    return Preemption(scheduler, "podgroup", uid, "cluster", outcome.victims)


class PodGroupCycle:
    """Decides about pod groups."""

    def __init__(self, cycle: SchedulingCycle) -> None:
        self._cycle = cycle

    async def schedule(self, attempt: PodGroupAttempt) -> PodGroupOutcome:
        """Decide about a group that has enough members."""
        members, release = attempt.preemptor.members, _rules(attempt).release
        running = attempt.snapshot.group_members.get(attempt.group.key, ())
        problem = validation_error(attempt.group, members, running, release)
        if problem is not None:
            return _failed(attempt, problem)
        simulation = await self._place(attempt, without_nominations(members, attempt.snapshot))
        if simulation.error:
            return _failed(attempt, _OTHER_FAILED + simulation.error, simulation)
        if simulation.fits:
            return PodGroupOutcome(simulation.tried, SCHEDULED, "")
        if attempt.members[0].inputs.profile.preemption is None:
            return _unschedulable(attempt, simulation, _PreemptionResult(_AFTER_CLAIMS))
        found = await self._preempt(attempt)
        if found.is_error:
            return _failed(attempt, found.message)
        return _unschedulable(attempt, simulation, found)

    async def _place(self, attempt: PodGroupAttempt, snapshot: Snapshot) -> _Simulation:
        """Place one member after the other, until the group cannot fit any more."""
        group, inputs = attempt.group, attempt.members[0].inputs
        inputs = replace(inputs, engine=ReferenceEngine(inputs.profile.rules))
        running = len(snapshot.group_members.get(group.key, ()))
        progress = PodGroupProgress(group.min_count, running, len(attempt.members))
        tried: dict[str, ScheduledPod | UnschedulablePod] = {}
        for member in attempt.members:
            if progress.is_hopeless:
                break
            found = await self._find_node(replace(member, inputs=inputs, snapshot=snapshot))
            tried[member.pod.uid] = found
            if isinstance(found, ScheduledPod):
                progress = progress.placed()
                snapshot = snapshot.with_assumed(member.pod, found.node)
            elif found.reason == SCHEDULER_ERROR:
                return _Simulation(progress, tried, found.message)
            else:
                progress = progress.refused()
        return _Simulation(progress, tried)

    async def _find_node(self, case: PodAttempt) -> ScheduledPod | UnschedulablePod:
        found = await self._cycle.find_node(case)
        if isinstance(found, FeasibleNodes):
            return no_fit(case, found)
        if isinstance(found, ScheduledPod) and found.node not in case.snapshot.nodes:
            return _refused(SCHEDULER_ERROR, f'nodeinfo not found for node name "{found.node}"')
        return found

    async def _preempt(self, attempt: PodGroupAttempt) -> _PreemptionResult:
        """Find the victims of a group (PodGroupEvaluator.Preempt)."""
        preemptor, rules = attempt.preemptor, _rules(attempt)
        reason = pod_group_ineligibility(preemptor, rules.release)
        if reason is not None:
            return _PreemptionResult(f"{_AFTER_CLAIMS}, {_PREFIX}{reason}")
        units = units_for_pod_groups(attempt.snapshot, rules.release)
        if is_preemption_ongoing(preemptor, units):
            current = {pod.uid: pod.nominated_node for pod in preemptor.members}
            return _PreemptionResult(f"{_PREFIX}ongoing preemption on nominated nodes", current)
        dry_run = start_dry_run(preemptor, units, rules)
        if isinstance(dry_run, Rejection):
            return _PreemptionResult(f"{_PREFIX}{dry_run}")
        simulation = await self._place(attempt, dry_run.remaining)
        if simulation.error:
            message = _PREEMPTION_FAILED + _OTHER_FAILED + simulation.error
            return _PreemptionResult(message, is_error=True)
        if not simulation.fits:
            return _PreemptionResult(f"{_AFTER_CLAIMS}, {_PREFIX}{simulation.failure}")
        chosen = dry_run.reprieve(simulation.placement, rules)
        victims = tuple(pod for unit in chosen.units for pod in unit.pods)
        message = f"found a placement for podgroup, preempting {len(victims)} victims"
        return _PreemptionResult(_PREFIX + message, chosen.placement, victims)


def _rules(attempt: PodGroupAttempt) -> SchedulerRules:
    return attempt.members[0].inputs.profile.rules


def _refused(
    reason: str, message: str, nomination: Nomination | None = _NO_NOMINATION
) -> UnschedulablePod:
    return UnschedulablePod(reason, message, RETRY_AFTER_BACKOFF, nomination, message)


def _failed(
    attempt: PodGroupAttempt, message: str, simulation: _Simulation | None = None
) -> PodGroupOutcome:
    """Return an error for all members; the one that failed keeps its own."""
    members: dict[str, ScheduledPod | UnschedulablePod] = {}
    for member in attempt.members:
        own = simulation.tried.get(member.pod.uid) if simulation else None
        failed = isinstance(own, UnschedulablePod) and own.reason == SCHEDULER_ERROR
        members[member.pod.uid] = own if own and failed else _refused(SCHEDULER_ERROR, message)
    return PodGroupOutcome(members, SCHEDULER_ERROR, message, RETRY_AFTER_BACKOFF)


def _unschedulable(
    attempt: PodGroupAttempt, simulation: _Simulation, preemption: _PreemptionResult
) -> PodGroupOutcome:
    """Return the refusal of a group, and of each member (submitPodGroupAlgorithmResult).

    A member that was refused keeps its own message. One that would fit alone has that of the group,
    and loses its nomination unless the group waits for its victims.
    """
    whole = ", ".join(filter(None, (simulation.failure, preemption.message)))
    nominations = preemption.nominations
    members: dict[str, ScheduledPod | UnschedulablePod] = {}
    for member in attempt.members:
        uid = member.pod.uid
        found = simulation.tried.get(uid)
        chosen = Nomination(nominations[uid]) if nominations and uid in nominations else None
        if isinstance(found, UnschedulablePod):
            members[uid] = replace(found, nomination=chosen)
        elif found is None:
            members[uid] = _refused(UNSCHEDULABLE, simulation.failure, chosen)
        elif nominations is not None:
            members[uid] = _refused(UNSCHEDULABLE, whole, chosen)
        else:
            members[uid] = _refused(UNSCHEDULABLE, f"{_UNSCHEDULABLE}, {whole}")
    return PodGroupOutcome(members, UNSCHEDULABLE, whole, victims=preemption.victims)
