"""The rules of preemption: eligibility, victims and PDB violations.

Each rule is a function of values, shared by every engine. The steps on one node:

1. remove every pod of lower priority (the *potential victims*); if the preemptor still does not
   fit, the node is no candidate;
2. add them back one by one, first those whose eviction would violate a disruption budget, in each
   group the most important first; a pod beside which the preemptor still fits is *reprieved* and
   stays, the others are the victims.

So the victims are not the cheapest set, but the pods that are left after the more important ones
were reprieved.

Sources: pkg/scheduler/framework/preemption and plugins/defaultpreemption, v1.30.12 to v1.37.0.

Filtering while departing pods are still in the snapshot.

A pod is departing if it is terminating or a victim of an assumed preemption. kube-scheduler may
already know that it is gone when the watch does not show it yet. A departing pod may use resources
or repel the preemptor, but it may also be the pod that attracts it. So a node is refused only if it
is refused both without the departing pods and with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from policies.kubernetes.releases import EmptySelector, PdbViolationCount, Release
from policies.kubernetes.snapshot import DisruptionBudget, NodeState, Pod, Snapshot
from policies.preemption.decision import Candidate, VictimSet
from policies.preemption.filtering import Pipeline
from policies.preemption.filtering.status import Code, Rejection, unresolvable
from policies.preemption.policy import DEFAULT_VICTIM_ORDER, Policy

PREEMPTION_POLICY_NEVER = "not eligible due to preemptionPolicy=Never."
WAITING_FOR_TERMINATING_POD = "not eligible due to a terminating pod on the nominated node."


@dataclass(frozen=True, slots=True)
class PodsByPdbViolation:
    """Pods split by whether evicting them violates a budget; each group keeps the order."""

    violating: tuple[Pod, ...]
    others: tuple[Pod, ...]


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
class BudgetCoverage:
    """The budgets that cover a pod, found once for all pods with the same labels.

    A cluster has few distinct label sets compared with its pods, so a dry run over many nodes
    matches selectors rarely.
    """

    budgets: Sequence[DisruptionBudget]
    release: Release
    _found: dict[tuple[str, frozenset[tuple[str, str]]], tuple[DisruptionBudget, ...]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def of(self, pod: Pod) -> tuple[DisruptionBudget, ...]:
        """Return the budgets that cover ``pod``, in their order."""
        key = (pod.namespace, frozenset(pod.labels.items()))
        found = self._found.get(key)
        if found is None:
            found = tuple(each for each in self.budgets if covers(each, pod, self.release))
            self._found[key] = found
        return found


def split_by_pdb_violation(pods: Iterable[Pod], coverage: BudgetCoverage) -> PodsByPdbViolation:
    """Count each pod in turn against the budgets that cover it, and split off the PDB violations.

    The counters start at each budget's ``allowed`` and exist for this call only: disruptions on
    other nodes are not counted. A pod whose eviction a budget has already counted is not counted
    again.
    """
    spent: Counter[str] = Counter()
    violating: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        breaks = False
        for budget in coverage.of(pod):
            if pod.name in budget.disrupted:
                continue
            spent[budget.key] += 1
            if spent[budget.key] > budget.allowed:
                breaks = True
                if coverage.release.pdb_violation_count is PdbViolationCount.UNTIL_FIRST_VIOLATION:
                    break
        (violating if breaks else others).append(pod)
    return PodsByPdbViolation(tuple(violating), tuple(others))


def covers(budget: DisruptionBudget, pod: Pod, release: Release) -> bool:
    """Return whether ``budget`` selects ``pod``."""
    if budget.namespace != pod.namespace or budget.selector is None:
        return False
    if release.empty_selector is EmptySelector.NOTHING and (
        not pod.labels or not budget.selector.requirements
    ):
        return False
    return budget.selector.matches(pod.labels)


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
    objection = trial.rejection()
    if objection is not None:
        return objection
    groups = split_by_pdb_violation(potential, coverage)
    trial, lost_despite_budget = _reprieve(trial, groups.violating)
    trial, lost = _reprieve(trial, groups.others)
    # In whatever order the policy reprieves, kube-scheduler takes the first victim for the most
    # important one.
    victims = tuple(DEFAULT_VICTIM_ORDER.sort((*lost_despite_budget, *lost)))
    if not victims:
        return unresolvable(Code.NO_VICTIM_NEEDED, node.node.name)
    leaving = {pod.uid for pod in victims}
    spared = tuple(pod for pod in potential if pod.uid not in leaving)
    return Candidate(node.node.name, VictimSet(victims, len(lost_despite_budget)), spared)


def _reprieve(trial: NodeDryRun, pods: Sequence[Pod]) -> tuple[NodeDryRun, list[Pod]]:
    victims: list[Pod] = []
    for pod in pods:
        with_pod = trial.adding(pod)
        if with_pod.rejection() is None:
            trial = with_pod
        else:
            victims.append(pod)
    return trial, victims


def affects_other_nodes(pod: Pod, snapshot: Snapshot) -> bool:
    """Return whether departing pods affect other nodes than their own, through anti-affinity."""
    return bool(pod.anti_affinity or snapshot.pods_with_anti_affinity)


def without_departing(snapshot: Snapshot, names: Collection[str]) -> Snapshot:
    """Return the snapshot without the departing pods of some nodes; itself if there are none."""
    departing = {
        name: [pod for pod in snapshot.nodes[name].pods if pod.departing] for name in names
    }
    left = {
        name: snapshot.nodes[name].without_pods(pods) for name, pods in departing.items() if pods
    }
    if not left:
        return snapshot
    gone = {pod.uid for pods in departing.values() for pod in pods}
    repelling = tuple(pod for pod in snapshot.pods_with_anti_affinity if pod.uid not in gone)
    return replace(snapshot, nodes={**snapshot.nodes, **left}, pods_with_anti_affinity=repelling)
