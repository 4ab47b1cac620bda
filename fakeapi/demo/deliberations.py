"""What the extender decided about a preemptor, told so that a person can follow it.

Who is spared was put back on the node after all had been taken off it, and the preemptor still fit.
Why it was put back before others is told by the rules themselves: first those whose eviction would
break a disruption budget, then the most important ones (:mod:`policies.preemption`).

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
    """A pod that goes."""

    pod: str
    priority: int


@dataclass(frozen=True, slots=True)
class Spared:
    """A pod that stays, though it is less important than the preemptor."""

    pod: str
    priority: int
    why: str


@dataclass(frozen=True, slots=True)
class Deliberation:
    """One answer of the verb ``preempt``.

    ``preemptor`` is its UID. ``decided_by`` is "" where there was one candidate only. ``seconds``
    is what deciding took, ``budgets_broken`` how many disruption budgets the victims break.
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
    """Tell of an answer; None if it names no node. ``budgets`` are those that it was made with."""
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
