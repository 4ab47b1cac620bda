"""Collects the extender's preemption decisions as they are sent."""

from __future__ import annotations

from extender.journal import DecisionLog
from extender.service import Service
from extender.verdict import AnswerContext, VerbResult
from fakeapi.demo.deliberations import ExplainedDecision, explain_decision


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
        told = explain_decision(answer, budgets, release, context.seconds)
        if told is not None:
            self.decisions.append(told)
