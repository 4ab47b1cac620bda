"""The rules of preemption: eligibility, and victims on a node.

Each rule is a function of values, shared by every engine. The steps on one node:

1. remove every pod of lower priority (the *potential victims*); if the preemptor still does not
   fit, the node is no candidate;
2. add them back one by one, first those whose eviction would violate a disruption budget, in each
   group the most important first; a pod beside which the preemptor still fits is *reprieved* and
   stays, the others are the victims.

So the victims are not the cheapest set, but the pods that are left after the more important ones
were reprieved. Where pod groups count, each step is for a unit of pods (see
:mod:`policies.preemption.victim_units`), which is evicted and reprieved as a whole. Its pods on
other nodes free nothing on this one, but they count for topology spread and inter-pod affinity.

Sources: pkg/scheduler/framework/preemption and plugins/defaultpreemption, v1.30.12 to v1.37.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from policies.kubernetes.snapshot import NodeState, Pod
from policies.preemption.decision import Candidate, VictimSet
from policies.preemption.disruption_budgets import BudgetCoverage, count_pdb_violations
from policies.preemption.filtering import Pipeline, freed_claims, node_releasing_devices
from policies.preemption.filtering.status import Code, Rejection, unresolvable
from policies.preemption.guards.allowance import BoundAllowance
from policies.preemption.policy import DEFAULT_VICTIM_ORDER, Policy, order_victims, unit_order
from policies.preemption.victim_units import UnitKind, VictimUnit, VictimUnits

PREEMPTION_POLICY_NEVER = "not eligible due to preemptionPolicy=Never."
WAITING_FOR_TERMINATING_POD = "not eligible due to a terminating pod on the nominated node."
WAITING_FOR_DEVICES = "not eligible due to devices that pods release on node {}."


def ineligibility(pod: Pod, units: VictimUnits, nominated_status: Rejection | None) -> str | None:
    """Return why ``pod`` may not preempt, or None if it may (PodEligibleToPreemptOthers).

    ``nominated_status`` is the filter status of the node that the pod is nominated to. A pod waits
    while victims of an earlier preemption still terminate there, unless eviction cannot help on
    that node.
    """
    if not pod.preempts:
        return PREEMPTION_POLICY_NEVER
    if pod.nominated_node is None:
        return None
    if nominated_status is not None and not nominated_status.resolvable:
        return None
    node = units.snapshot.nodes.get(pod.nominated_node)
    if node is not None and any(
        is_terminating_by_preemption(other) and units.priority_of(other) < pod.priority
        for other in node.pods
    ):
        return WAITING_FOR_TERMINATING_POD
    return None


def waits_for_devices(
    pipeline: Pipeline, units: VictimUnits, rejected: Mapping[str, Rejection]
) -> str | None:
    """Return why a pod does not preempt while devices that it can get are released, or None."""
    node = node_releasing_devices(pipeline, units.snapshot, rejected)
    return None if node is None else WAITING_FOR_DEVICES.format(node)


def is_terminating_by_preemption(pod: Pod) -> bool:
    """Return whether kube-scheduler evicts ``pod``: it terminates, or is an assumed victim."""
    return pod.assumed_victim or (pod.terminating and pod.preempted)


@dataclass(frozen=True, slots=True)
class NodeDryRun:
    """A node in a dry run, with the filters updated for the pods removed and added so far.

    ``others`` are the other nodes that have a pod of a unit; their states stay as they are.
    """

    pipeline: Pipeline
    node: NodeState
    others: Mapping[str, NodeState] = field(default_factory=dict)

    def removing(self, pod: Pod) -> NodeDryRun:
        """Return the dry run without ``pod``."""
        other = self.others.get(pod.node_name or "")
        if other is not None:
            return replace(self, pipeline=self.pipeline.removing(pod, other))
        node = self.node.without_pods((pod,))
        return replace(self, pipeline=self.pipeline.removing(pod, node), node=node)

    def adding(self, pod: Pod) -> NodeDryRun:
        """Return the dry run with ``pod`` added back."""
        other = self.others.get(pod.node_name or "")
        if other is not None:
            return replace(self, pipeline=self.pipeline.adding(pod, other))
        node = self.node.with_pod(pod)
        return replace(self, pipeline=self.pipeline.adding(pod, node), node=node)

    def keeping(self, unit: VictimUnit) -> NodeDryRun | None:
        """Return the dry run with a unit added back; None if the preemptor does not fit then."""
        trial = self
        for pod in unit.pods:
            trial = trial.adding(pod)
        return trial if trial.rejection() is None else None

    def rejection(self) -> Rejection | None:
        """Return why the preemptor does not fit now, or None if it does."""
        return self.pipeline.refuse(self.node)


@dataclass(frozen=True, slots=True)
class EmptiedNode:
    """A node that the preemptor fits without its potential victims.

    ``potential`` are these, the most important first, each with its PDB violations.
    """

    trial: NodeDryRun
    potential: Sequence[tuple[VictimUnit, int]]

    def candidate(self, victims: Sequence[tuple[VictimUnit, int]], trial: NodeDryRun) -> Candidate:
        """Return the node with some of the potential victims; ``trial`` has all others."""
        # In whatever order the policy reprieves, kube-scheduler takes the first victim for the most
        # important one.
        pods = order_victims((unit for unit, _ in victims), DEFAULT_VICTIM_ORDER)
        evicted = {pod.uid for pod in pods}
        return Candidate(
            trial.node.node.name,
            VictimSet(pods, sum(count for _, count in victims)),
            spared=tuple(
                p for unit, _ in self.potential for p in unit.pods if p.uid not in evicted
            ),
            groups=tuple(unit for unit, _ in victims if unit.kind is not UnitKind.POD),
            freed_claims=freed_claims(trial.pipeline, trial.node),
        )


def potential_units(
    preemptor: Pod,
    node: NodeState,
    units: VictimUnits,
    policy: Policy,
    allowances: Sequence[BoundAllowance] = (),
) -> list[VictimUnit]:
    """Return those of the units of a node that may be victims, the most important first.

    A pod that is to be resized is on the node, and never a victim of itself. Upstream evicts it if
    its group has a lower priority.
    """
    return unit_order(policy.victims).sort(
        unit
        for unit in units.of(node.pods)
        if unit.priority <= preemptor.priority - policy.priority_gap
        and all(
            pod.uid != preemptor.uid
            and policy.may_evict(pod, units.snapshot.now_ns)
            and not any(each.protects(pod) for each in allowances)
            for pod in unit.pods
        )
    )


def empty_node(
    pipeline: Pipeline,
    node: NodeState,
    units: VictimUnits,
    coverage: BudgetCoverage,
    policy: Policy,
    allowances: Sequence[BoundAllowance] = (),
) -> EmptiedNode | Rejection:
    """Return ``node`` without its potential victims, or why preemption cannot help there."""
    name, states = node.node.name, units.snapshot.nodes
    away = {pod.node_name or "" for unit in units.of(node.pods) for pod in unit.away_from(name)}
    if not away <= states.keys():
        return unresolvable(Code.NO_NODE_OF_MEMBER, min(away - states.keys()))
    potential = potential_units(pipeline.pod, node, units, policy, allowances)
    if not potential:
        return unresolvable(Code.NO_VICTIMS)
    trial = NodeDryRun(pipeline, node, {each: states[each] for each in away})
    for unit in potential:
        for pod in unit.pods:
            trial = trial.removing(pod)
    rejection = trial.rejection()
    if rejection is not None:
        return rejection
    counts = count_pdb_violations((unit.pods for unit in potential), coverage)
    return EmptiedNode(trial, list(zip(potential, counts, strict=True)))


def select_victims(
    pipeline: Pipeline,
    node: NodeState,
    units: VictimUnits,
    coverage: BudgetCoverage,
    policy: Policy,
    allowances: Sequence[BoundAllowance] = (),
) -> Candidate | Rejection:
    """Return the victims on ``node``, or why preemption cannot help there (SelectVictimsOnNode)."""
    emptied = empty_node(pipeline, node, units, coverage, policy, allowances)
    if isinstance(emptied, Rejection):
        return emptied
    counted = emptied.potential
    trial, violating = _reprieve(emptied.trial, (each for each in counted if each[1]))
    trial, others = _reprieve(trial, (each for each in counted if not each[1]))
    victims = [*violating, *others]
    if not victims:
        return unresolvable(Code.NO_VICTIM_NEEDED, node.node.name)
    return emptied.candidate(victims, trial)


def _reprieve(
    trial: NodeDryRun, units: Iterable[tuple[VictimUnit, int]]
) -> tuple[NodeDryRun, list[tuple[VictimUnit, int]]]:
    """Return the dry run with the units that are reprieved, and the others with their counts."""
    victims: list[tuple[VictimUnit, int]] = []
    for unit, count in units:
        kept = trial.keeping(unit)
        if kept is None:
            victims.append((unit, count))
        else:
            trial = kept
    return trial, victims
