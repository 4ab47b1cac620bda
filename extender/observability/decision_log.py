"""The decision log: one structured line for each answer, with the decision, state and reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import structlog

from extender.protocol.verb_context import AnswerContext, VerbResult
from policies.kubernetes.snapshot import Pod
from policies.preemption.decision import PreemptionDecision
from policies.preemption.explanation import GuardActions
from policies.preemption.filtering.status import (
    Code,
    CountedRejections,
    FilterDecision,
    Reason,
    Rejection,
)

ReasonCounts = Counter[Reason]


class DecisionLog:
    """Logs answers; ``watch_silence`` is the age of the newest watch event in seconds."""

    def __init__(self) -> None:
        self._log = structlog.get_logger()

    def log_answer(self, answer: VerbResult, context: AnswerContext, watch_silence: float) -> None:
        """Log one answer."""
        decision = answer.decision
        if isinstance(decision, FilterDecision):
            fields = {"fits": len(decision.feasible), "refused": len(decision.rejected)}
        else:
            fields = _preemption_fields(decision, answer)
        self._log.info(
            context.verb,
            pod=decision.pod.key,
            **fields,
            notes=list(answer.notes),
            generation=context.generation,
            pods_version=context.pods_version,
            watch_silence_seconds=round(watch_silence, 3),
            took_ms=round(context.seconds * 1000, 3),
        )

    def log_fallback(self, verb: str, pod: Pod, degraded: str) -> None:
        """Log a fallback answer."""
        self._log.warning("degraded", verb=verb, pod=pod.key, degraded=degraded)

    def log_refusal(self, verb: str, status: int, problem: str) -> None:
        """Log why a call was refused."""
        self._log.warning("refused", verb=verb, status=status, problem=problem)


def _preemption_fields(decision: PreemptionDecision, answer: VerbResult) -> dict[str, Any]:
    chosen = answer.named_candidate
    return {
        "node": None if chosen is None else chosen.node,
        "victims": [] if chosen is None else [pod.key for pod in chosen.victims.pods],
        "spared": 0 if chosen is None else len(chosen.spared),
        "decided_by": decision.decided_by,
        "candidates": len(decision.candidates),
        "rejected": len(decision.rejected),
        **_guard_fields(answer.guards),
        **({} if decision.search is None else {"search": str(decision.search)}),
    }


def _guard_fields(guards: GuardActions) -> dict[str, Any]:
    fields = {
        "protected": guards.protected,
        "refused_attempt": guards.refused_attempt,
        "refused_nodes": guards.refused_nodes,
    }
    return {name: value for name, value in fields.items() if value}


def count_reasons(rejected: Mapping[str, Rejection]) -> ReasonCounts:
    """Return the count of each reason; NO_VICTIM_NEEDED is counted without the node's name."""
    if isinstance(rejected, CountedRejections):
        return rejected.count_reasons()
    return Counter(
        Reason(reason.code) if reason.code is Code.NO_VICTIM_NEEDED else reason
        for rejection in rejected.values()
        for reason in rejection.reasons
    )
