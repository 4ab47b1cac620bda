"""Explained preemption decisions of the extender.

A pod is reprieved if, after all potential victims were removed from the node, the preemptor still
fits with the pod added again. The order of reprieving is the reason for the result: first the pods
whose eviction would violate a disruption budget, then by importance (:mod:`policies.preemption`).

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from extender.verdict import Answer
from policies.decision import Candidate, PreemptionDecision
from policies.model import DisruptionBudget, Pod
from policies.policy import IMPORTANCE
from policies.preemption import Coverage, group_by_budget
from policies.upstream import Release


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that is evicted."""

    pod: str
    priority: int


@dataclass(frozen=True, slots=True)
class Spared:
    """A pod of lower priority than the preemptor that is not evicted."""

    pod: str
    priority: int
    why: str


@dataclass(frozen=True, slots=True)
class Deliberation:
    """One decision of the verb ``preempt``.

    ``preemptor`` is a UID. ``decided_by`` is "" if there was only one candidate. ``seconds`` is the
    time that the decision took, ``pdb_violations`` the number of PDB violations of the victims.
    """

    preemptor: str
    pod: str
    node: str
    victims: tuple[Victim, ...]
    spared: tuple[Spared, ...]
    decided_by: str
    candidates: int
    budgets_broken: int
    seconds: float


def deliberation_of(
    answer: Answer, budgets: Sequence[DisruptionBudget], release: Release, seconds: float
) -> Deliberation | None:
    """Explain a result; None if it names no node. ``budgets`` are those of the decision."""
    decision, chosen = answer.decision, answer.promised
    if not isinstance(decision, PreemptionDecision) or chosen is None:
        return None
    return Deliberation(
        decision.pod.uid,
        decision.pod.key,
        chosen.node,
        tuple(Victim(pod.key, pod.priority) for pod in chosen.victims.pods),
        tuple(
            Spared(pod.key, pod.priority, why)
            for pod, why in zip(chosen.spared, _reasons(chosen, budgets, release), strict=True)
        ),
        decision.decided_by or "",
        len(decision.candidates),
        chosen.victims.violations,
        seconds,
    )


def _reasons(chosen: Candidate, budgets: Sequence[DisruptionBudget], release: Release) -> list[str]:
    coverage = Coverage(budgets, release)
    potential = IMPORTANCE.sort((*chosen.victims.pods, *chosen.spared))
    protected = {pod.uid for pod in group_by_budget(potential, coverage).violating}
    return [_reason(pod, chosen.victims.pods, protected, coverage) for pod in chosen.spared]


def _reason(
    pod: Pod, victims: Sequence[Pod], protected: Collection[str], coverage: Coverage
) -> str:
    if pod.uid in protected:
        names = ", ".join(budget.key for budget in coverage.of(pod))
        return f"the budget {names} would be broken"
    highest = victims[0]
    if IMPORTANCE.sort((highest, pod))[0] is pod:
        return f"ahead of who goes by {IMPORTANCE.separating(pod, highest)}"
    return "small enough to stay"
