"""The extender's preemption decisions, collected as they are sent, and explained.

A pod is reprieved if, after all potential victims were removed from the node, the preemptor still
fits with the pod added again. The order of reprieving is the reason for the result: first the pods
whose eviction would violate a disruption budget, then by importance (:mod:`policies.preemption`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from extender.observability.decision_log import DecisionLog
from extender.protocol.verb_context import AnswerContext, VerbResult
from extender.server.service import Service
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import DisruptionBudget, Pod
from policies.preemption.decision import Candidate, PreemptionDecision
from policies.preemption.disruption_budgets import BudgetCoverage, split_by_pdb_violation
from policies.preemption.policy import DEFAULT_VICTIM_ORDER


@dataclass(frozen=True, slots=True)
class ExplainedVictim:
    """A pod that is evicted."""

    pod: str
    priority: int


@dataclass(frozen=True, slots=True)
class ReprievedPod:
    """A pod of lower priority than the preemptor that is not evicted."""

    pod: str
    priority: int
    reason: str


@dataclass(frozen=True, slots=True)
class ExplainedDecision:
    """One decision of the verb ``preempt``.

    ``preemptor`` is a UID. ``decided_by`` is "" if there was only one candidate. ``seconds`` is the
    time that the decision took, ``pdb_violations`` the number of PDB violations of the victims.
    """

    preemptor: str
    pod: str
    node: str
    victims: tuple[ExplainedVictim, ...]
    reprieved: tuple[ReprievedPod, ...]
    decided_by: str
    candidates: int
    pdb_violations: int
    seconds: float


def explain_decision(
    answer: VerbResult, budgets: Sequence[DisruptionBudget], release: Release, seconds: float
) -> ExplainedDecision | None:
    """Explain a result; None if it names no node. ``budgets`` are those of the decision."""
    decision, chosen = answer.decision, answer.named_candidate
    if not isinstance(decision, PreemptionDecision) or chosen is None:
        return None
    return ExplainedDecision(
        decision.pod.uid,
        decision.pod.key,
        chosen.node,
        tuple(ExplainedVictim(pod.key, pod.priority) for pod in chosen.victims.pods),
        tuple(
            ReprievedPod(pod.key, pod.priority, reason)
            for pod, reason in zip(chosen.spared, _reasons(chosen, budgets, release), strict=True)
        ),
        decision.decided_by or "",
        len(decision.candidates),
        chosen.victims.violations,
        seconds,
    )


def _reasons(chosen: Candidate, budgets: Sequence[DisruptionBudget], release: Release) -> list[str]:
    coverage = BudgetCoverage(budgets, release)
    potential = DEFAULT_VICTIM_ORDER.sort((*chosen.victims.pods, *chosen.spared))
    protected = {pod.uid for pod in split_by_pdb_violation(potential, coverage).violating}
    return [_reason(pod, chosen.victims.pods, protected, coverage) for pod in chosen.spared]


def _reason(
    pod: Pod, victims: Sequence[Pod], protected: Collection[str], coverage: BudgetCoverage
) -> str:
    if pod.uid in protected:
        names = ", ".join(budget.key for budget in coverage.of(pod))
        return f"the budget {names} would be violated"
    highest = victims[0]
    if DEFAULT_VICTIM_ORDER.sort((highest, pod))[0] is pod:
        return (
            f"ahead of the first victim by {DEFAULT_VICTIM_ORDER.deciding_criterion(pod, highest)}"
        )
    return "fits beside the preemptor"


class DecisionCollector(DecisionLog):
    """A decision log that keeps decisions; ``service`` must be set before the first call."""

    service: Service

    def __init__(self) -> None:
        super().__init__()
        self.decisions: list[ExplainedDecision] = []

    def log_answer(self, answer: VerbResult, context: AnswerContext, watch_silence: float) -> None:
        """Log the result, and keep the explained decision if it names a node."""
        super().log_answer(answer, context, watch_silence)
        budgets = self.service.cluster.snapshot().budgets
        release = self.service.engine.rules.release
        decision = explain_decision(answer, budgets, release, context.seconds)
        if decision is not None:
            self.decisions.append(decision)
