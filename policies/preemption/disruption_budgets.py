"""PodDisruptionBudgets in preemption: the pods that a budget covers, and PDB violations.

Preemption treats budgets as a preference: a pod whose eviction would violate one is reprieved
first, and evicted if the preemptor does not fit otherwise.

Source: filterPodsWithPDBViolation in pkg/scheduler/framework/plugins/defaultpreemption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from policies.kubernetes.releases import EmptySelector, PdbViolationCount, Release
from policies.kubernetes.snapshot import DisruptionBudget, Pod


@dataclass(frozen=True, slots=True)
class PodsByPdbViolation:
    """Pods split by whether evicting them violates a budget; each group keeps the order."""

    violating: tuple[Pod, ...]
    others: tuple[Pod, ...]


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
    violating: list[Pod] = []
    others: list[Pod] = []
    pods = tuple(pods)
    for pod, violations in zip(pods, count_pdb_violations(zip(pods), coverage), strict=True):
        (violating if violations else others).append(pod)
    return PodsByPdbViolation(tuple(violating), tuple(others))


def count_pdb_violations(units: Iterable[Sequence[Pod]], coverage: BudgetCoverage) -> list[int]:
    """Return the number of PDB violations of each unit of pods that is evicted as a whole.

    Every pod is counted in turn, with the counters of the units before it. Source:
    FilterVictimsWithPDBViolation in pkg/scheduler/framework/preemption/util.go.
    """
    counts: Counter[str] = Counter()
    return [sum([bool(violated_budgets(pod, counts, coverage)) for pod in pods]) for pods in units]


def violated_budgets(pod: Pod, counts: Counter[str], coverage: BudgetCoverage) -> list[str]:
    """Count a pod against the budgets that cover it; return the keys of those that it violates.

    Releases that stop at the first violation do not count, or return, those after it.
    """
    violated = []
    for budget in coverage.of(pod):
        if pod.name in budget.disrupted:
            continue
        counts[budget.key] += 1
        if counts[budget.key] > budget.allowed:
            violated.append(budget.key)
            if coverage.release.pdb_violation_count is PdbViolationCount.UNTIL_FIRST_VIOLATION:
                break
    return violated


def covers(budget: DisruptionBudget, pod: Pod, release: Release) -> bool:
    """Return whether ``budget`` selects ``pod``."""
    if budget.namespace != pod.namespace or budget.selector is None:
        return False
    if release.empty_selector is EmptySelector.NOTHING and (
        not pod.labels or not budget.selector.requirements
    ):
        return False
    return budget.selector.matches(pod.labels)
