"""Preemption for a pod group: victims over the whole cluster, for all members that are placed.

Every unit of lower priority is removed, and the group is scheduled once on what remains. That
placement is final. Then the units are put back one by one, first those whose eviction would violate
a disruption budget, in each part the most important first; a unit beside which every placed member
still fits its node is reprieved.

Source: pkg/scheduler/framework/preemption/podgrouppreemption.go, v1.37.0. In 1.36 the group is
scheduled anew in each step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.pod_groups import PodGroup
from policies.kubernetes.releases import Release
from policies.kubernetes.shared_mapping import with_entries
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.disruption_budgets import BudgetCoverage, count_pdb_violations
from policies.preemption.filtering import Pipeline, run_pre_filters
from policies.preemption.filtering.status import Code, Rejection, unresolvable
from policies.preemption.policy import SchedulerRules, unit_order
from policies.preemption.victim_units import VictimUnit, VictimUnits
from policies.preemption.victims.victim_selection import (
    PREEMPTION_POLICY_NEVER,
    is_terminating_by_preemption,
)

Placement = Mapping[str, str]
"""The node of each member that is placed, by the UID of the member, in the order of placing."""


@dataclass(frozen=True, slots=True)
class PodGroupPreemptor:
    """A root group, and its members that are not scheduled, in the order of the queue."""

    group: PodGroup
    members: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class PodGroupCandidate:
    """The victims of a pod group, the most important first, and the nodes of its members."""

    placement: Placement
    units: tuple[VictimUnit, ...]
    violations: int


def pod_group_ineligibility(preemptor: PodGroupPreemptor, release: Release) -> str | None:
    """Return why a pod group may not preempt, or None if it may."""
    if FeatureGate.POD_GROUP_PREEMPTION_POLICY in release.gates:
        preempts = preemptor.group.preempts
    else:
        preempts = all(member.preempts for member in preemptor.members)
    return None if preempts else PREEMPTION_POLICY_NEVER


def is_preemption_ongoing(preemptor: PodGroupPreemptor, units: VictimUnits) -> bool:
    """Return whether victims still terminate on a node that a member is nominated to."""
    nominated = {member.nominated_node or "" for member in preemptor.members}
    states = (units.snapshot.nodes[name] for name in nominated & units.snapshot.nodes.keys())
    return any(
        is_terminating_by_preemption(pod) and units.priority_of(pod) < preemptor.group.priority
        for state in states
        for pod in state.pods
    )


@dataclass(frozen=True, slots=True)
class PodGroupDryRun:
    """All units that a pod group may evict, the most important first, and what is without them."""

    preemptor: PodGroupPreemptor
    potential: tuple[VictimUnit, ...]
    remaining: Snapshot

    def reprieve(self, placement: Placement, rules: SchedulerRules) -> PodGroupCandidate:
        """Return the victims for the members as they are placed on ``remaining``."""
        members = {member.uid: member for member in self.preemptor.members}
        placed = [structs.replace(members[uid], node_name=node) for uid, node in placement.items()]
        coverage = BudgetCoverage(self.remaining.budgets, rules.release)
        counts = count_pdb_violations((unit.pods for unit in self.potential), coverage)
        counted = sorted(zip(self.potential, counts, strict=True), key=lambda each: not each[1])
        trial, victims, violations = _trial(placed, self.remaining, rules), list[VictimUnit](), 0
        for unit, count in counted:
            with_unit = trial.adding(unit)
            if with_unit.fits():
                trial = with_unit
            else:
                victims.append(unit)
                violations += count
        order = unit_order(rules.policy.victims)
        return PodGroupCandidate(placement, tuple(order.sort(victims)), violations)


def start_dry_run(
    preemptor: PodGroupPreemptor, units: VictimUnits, rules: SchedulerRules
) -> PodGroupDryRun | Rejection:
    """Remove all units that a pod group may evict, or return why preemption cannot help.

    The caller schedules the group on what remains. Source: selectVictimsOnDomain.
    """
    snapshot = units.snapshot
    potential = unit_order(rules.policy.victims).sort(
        unit
        for unit in units.of(pod for state in snapshot.nodes.values() for pod in state.pods)
        if unit.priority < preemptor.group.priority
        and all(rules.policy.may_evict(pod, snapshot.now_ns) for pod in unit.pods)
    )
    if not potential:
        return unresolvable(Code.NO_VICTIMS_OF_GROUP)
    evicted = {pod.uid for unit in potential for pod in unit.pods}
    remaining = replace(
        snapshot,
        nodes={
            name: state.without_pods([pod for pod in state.pods if pod.uid in evicted])
            for name, state in snapshot.nodes.items()
        },
        pods_with_anti_affinity=tuple(
            pod for pod in snapshot.pods_with_anti_affinity if pod.uid not in evicted
        ),
    )
    return PodGroupDryRun(
        preemptor, tuple(potential), without_nominations(preemptor.members, remaining)
    )


@dataclass(frozen=True, slots=True)
class _Trial:
    """The nodes with the units put back so far, and the filters of each placed member."""

    states: Mapping[str, NodeState]
    pipelines: tuple[Pipeline, ...]

    def adding(self, unit: VictimUnit) -> _Trial:
        states, pipelines = dict(self.states), self.pipelines
        for pod in unit.pods:
            name = pod.node_name or ""
            states[name] = state = states[name].with_pod(pod)
            pipelines = tuple(each.adding(pod, state) for each in pipelines)
        return _Trial(states, pipelines)

    def fits(self) -> bool:
        """Return whether every member fits its node beside those before it."""
        states = dict(self.states)
        for pipeline in self.pipelines:
            name = pipeline.pod.node_name or ""
            if pipeline.refuse(states[name]) is not None:
                return False
            states[name] = states[name].with_pod(pipeline.pod)
        return True


def _trial(placed: Iterable[Pod], remaining: Snapshot, rules: SchedulerRules) -> _Trial:
    """Prepare the filters of each member with those before it on their nodes."""
    pipelines: list[Pipeline] = []
    before = remaining
    for member in placed:
        name = member.node_name or ""
        pending = structs.replace(member, node_name=None)
        pipeline = run_pre_filters(
            pending, before, rules.release, rules.filters, rules.scheduler_names
        )
        pipelines.append(replace(pipeline, pod=member))
        repelling = (member,) if member.anti_affinity else ()
        before = replace(
            before,
            nodes=with_entries(before.nodes, {name: before.nodes[name].with_pod(member)}),
            pods_with_anti_affinity=(*before.pods_with_anti_affinity, *repelling),
        )
    return _Trial(remaining.nodes, tuple(pipelines))


def without_nominations(members: Iterable[Pod], snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without the nominations of the members of a group.

    While a group is scheduled, kube-scheduler knows only the names of members that are nominated
    already, so they do not count beside each other. Source: nominatedPodsForNode in
    pkg/scheduler/backend/queue; observed with 1.37.0.
    """
    own = {member.uid for member in members}
    return replace(
        snapshot,
        nodes={
            name: structs.replace(
                state, nominated=tuple(n for n in state.nominated if n.uid not in own)
            )
            for name, state in snapshot.nodes.items()
        },
    )
