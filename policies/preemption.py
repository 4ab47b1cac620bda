"""The rules of preemption: who may preempt, who may go, which budgets that breaks.

Each rule is a function of values, shared by every engine. The order of things on one node:

1. take away every pod of lower priority (the *potential victims*); if the preemptor still doesn't
   fit, the node is no candidate;
2. put them back one by one, those whose eviction would break a disruption budget first, in each
   group the most important first; whoever still lets the preemptor fit is *reprieved* and stays,
   the others are the victims.

So the victims are not the cheapest set but the one left over when importance has had its say.

Sources: pkg/scheduler/framework/preemption and plugins/defaultpreemption, v1.30.12 to v1.37.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from policies.decision import Candidate, Code, Rejection, VictimSet, unresolvable
from policies.filtering import Pipeline
from policies.model import DisruptionBudget, NodeState, Pod, Snapshot
from policies.policy import IMPORTANCE, Policy
from policies.upstream import BudgetAfterViolation, EmptySelector, Release

NEVER = "not eligible due to preemptionPolicy=Never."
WAITING = "not eligible due to a terminating pod on the nominated node."


@dataclass(frozen=True, slots=True)
class BudgetGroups:
    """Pods split by whether evicting them breaks a budget; each group keeps the order."""

    violating: tuple[Pod, ...]
    others: tuple[Pod, ...]


def ineligibility(pod: Pod, snapshot: Snapshot, nominated_status: Rejection | None) -> str | None:
    """Say why ``pod`` may not preempt, or None if it may (PodEligibleToPreemptOthers).

    ``nominated_status`` is what filtering said of the node that the pod is nominated to. A pod
    waits while victims of an earlier preemption still terminate there, unless eviction cannot help
    that node.
    """
    if not pod.preempts:
        return NEVER
    if pod.nominated_node is None:
        return None
    if nominated_status is not None and not nominated_status.resolvable:
        return None
    node = snapshot.nodes.get(pod.nominated_node)
    if node is not None and any(
        other.priority < pod.priority and terminating_by_preemption(other) for other in node.pods
    ):
        return WAITING
    return None


def terminating_by_preemption(pod: Pod) -> bool:
    """Return whether ``pod`` is on its way out because kube-scheduler evicted it, or will be."""
    return pod.promised or (pod.terminating and pod.preempted)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which budgets speak of which pods, found once for all pods that have the same labels.

    A cluster has few distinct sets of labels beside its pods, so a dry run over many nodes matches
    selectors rarely.
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


def group_by_budget(pods: Iterable[Pod], coverage: Coverage) -> BudgetGroups:
    """Charge each pod in turn to the budgets that cover it; those that overdraw one are violating.

    The counters start from each budget's ``allowed`` and live for this call only: disruptions on
    other nodes are not counted. A pod whose eviction a budget has charged already is not charged
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
                if coverage.release.budget_after_violation is BudgetAfterViolation.SPARED:
                    break
        (violating if breaks else others).append(pod)
    return BudgetGroups(tuple(violating), tuple(others))


def covers(budget: DisruptionBudget, pod: Pod, release: Release) -> bool:
    """Return whether ``budget`` speaks of ``pod``."""
    if budget.namespace != pod.namespace or budget.selector is None:
        return False
    if release.empty_selector is EmptySelector.NOTHING and (
        not pod.labels or not budget.selector.requirements
    ):
        return False
    return budget.selector.matches(pod.labels)


@dataclass(frozen=True, slots=True)
class Trial:
    """A node while its potential victims come and go, with the filters as they stand then."""

    pipeline: Pipeline
    node: NodeState

    def removing(self, pod: Pod) -> Trial:
        """Return the trial without ``pod``."""
        node = self.node.without((pod,))
        return Trial(self.pipeline.removing(pod, node), node)

    def adding(self, pod: Pod) -> Trial:
        """Return the trial with ``pod`` put back."""
        node = self.node.with_pod(pod)
        return Trial(self.pipeline.adding(pod, node), node)

    def objection(self) -> Rejection | None:
        """Say why the preemptor does not fit now, or None if it does."""
        return self.pipeline.refuse(self.node)


def select_victims(
    pipeline: Pipeline,
    node: NodeState,
    coverage: Coverage,
    policy: Policy,
) -> Candidate | Rejection:
    """Find who must leave ``node``, or why that cannot help (SelectVictimsOnNode)."""
    potential = policy.victims.sort(
        pod
        for pod in node.pods
        if pod.priority < pipeline.pod.priority and policy.guard_of(pod) is None
    )
    if not potential:
        return unresolvable(Code.NO_VICTIMS)
    trial = Trial(pipeline, node)
    for pod in potential:
        trial = trial.removing(pod)
    objection = trial.objection()
    if objection is not None:
        return objection
    groups = group_by_budget(potential, coverage)
    trial, lost_despite_budget = _reprieve(trial, groups.violating)
    trial, lost = _reprieve(trial, groups.others)
    # Whatever order the policy judged them in: kube-scheduler takes the first for the most
    # important.
    victims = tuple(IMPORTANCE.sort((*lost_despite_budget, *lost)))
    if not victims:
        return unresolvable(Code.NO_VICTIM_NEEDED, node.node.name)
    leaving = {pod.uid for pod in victims}
    spared = tuple(pod for pod in potential if pod.uid not in leaving)
    return Candidate(node.node.name, VictimSet(victims, len(lost_despite_budget)), spared)


def _reprieve(trial: Trial, pods: Sequence[Pod]) -> tuple[Trial, list[Pod]]:
    victims: list[Pod] = []
    for pod in pods:
        with_pod = trial.adding(pod)
        if with_pod.objection() is None:
            trial = with_pod
        else:
            victims.append(pod)
    return trial, victims
