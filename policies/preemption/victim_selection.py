"""The rules of preemption: eligibility, and victims on a node.

Each rule is a function of values, shared by every engine. The steps on one node:

1. remove every pod of lower priority (the *potential victims*); if the preemptor still does not
   fit, the node is no candidate;
2. add them back one by one, first those whose eviction would violate a disruption budget, in each
   group the most important first; a pod beside which the preemptor still fits is *reprieved* and
   stays, the others are the victims.

So the victims are not the cheapest set, but the pods that are left after the more important ones
were reprieved.

Sources: pkg/scheduler/framework/preemption and plugins/defaultpreemption, v1.30.12 to v1.37.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.decision import Candidate, VictimSet
from policies.preemption.disruption_budgets import BudgetCoverage, split_by_pdb_violation
from policies.preemption.filtering import Pipeline
from policies.preemption.filtering.status import Code, Rejection, unresolvable
from policies.preemption.policy import DEFAULT_VICTIM_ORDER, Policy

PREEMPTION_POLICY_NEVER = "not eligible due to preemptionPolicy=Never."
WAITING_FOR_TERMINATING_POD = "not eligible due to a terminating pod on the nominated node."


def ineligibility(pod: Pod, snapshot: Snapshot, nominated_status: Rejection | None) -> str | None:
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
    node = snapshot.nodes.get(pod.nominated_node)
    if node is not None and any(
        other.priority < pod.priority and is_terminating_by_preemption(other) for other in node.pods
    ):
        return WAITING_FOR_TERMINATING_POD
    return None


def is_terminating_by_preemption(pod: Pod) -> bool:
    """Return whether kube-scheduler evicts ``pod``: it terminates, or is an assumed victim."""
    return pod.assumed_victim or (pod.terminating and pod.preempted)


@dataclass(frozen=True, slots=True)
class NodeDryRun:
    """A node in a dry run, with the filters updated for the pods removed and added so far."""

    pipeline: Pipeline
    node: NodeState

    def removing(self, pod: Pod) -> NodeDryRun:
        """Return the dry run without ``pod``."""
        node = self.node.without_pods((pod,))
        return NodeDryRun(self.pipeline.removing(pod, node), node)

    def adding(self, pod: Pod) -> NodeDryRun:
        """Return the dry run with ``pod`` added back."""
        node = self.node.with_pod(pod)
        return NodeDryRun(self.pipeline.adding(pod, node), node)

    def rejection(self) -> Rejection | None:
        """Return why the preemptor does not fit now, or None if it does."""
        return self.pipeline.refuse(self.node)


def select_victims(
    pipeline: Pipeline, node: NodeState, coverage: BudgetCoverage, policy: Policy
) -> Candidate | Rejection:
    """Return the victims on ``node``, or why preemption cannot help there (SelectVictimsOnNode)."""
    potential = policy.victims.sort(
        pod
        for pod in node.pods
        if pod.priority < pipeline.pod.priority and policy.protection_of(pod) is None
    )
    if not potential:
        return unresolvable(Code.NO_VICTIMS)
    trial = NodeDryRun(pipeline, node)
    for pod in potential:
        trial = trial.removing(pod)
    rejection = trial.rejection()
    if rejection is not None:
        return rejection
    groups = split_by_pdb_violation(potential, coverage)
    trial, violating = _reprieve(trial, groups.violating)
    trial, others = _reprieve(trial, groups.others)
    # In whatever order the policy reprieves, kube-scheduler takes the first victim for the most
    # important one.
    victims = tuple(DEFAULT_VICTIM_ORDER.sort((*violating, *others)))
    if not victims:
        return unresolvable(Code.NO_VICTIM_NEEDED, node.node.name)
    evicted = {pod.uid for pod in victims}
    reprieved = tuple(pod for pod in potential if pod.uid not in evicted)
    return Candidate(node.node.name, VictimSet(victims, len(violating)), reprieved)


def _reprieve(trial: NodeDryRun, pods: Sequence[Pod]) -> tuple[NodeDryRun, list[Pod]]:
    victims: list[Pod] = []
    for pod in pods:
        with_pod = trial.adding(pod)
        if with_pod.rejection() is None:
            trial = with_pod
        else:
            victims.append(pod)
    return trial, victims
