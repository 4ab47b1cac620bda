"""Collects the extender's preemption decisions as they are sent."""

from __future__ import annotations

from extender.journal import Journal
from extender.service import Service
from extender.verdict import Answer, Circumstances
from fakeapi.demo.deliberations import Deliberation, deliberation_of


class Witness(Journal):
    """A decision log that keeps decisions; ``service`` must be set before the first call."""

    service: Service

    def __init__(self) -> None:
        super().__init__()
        self.deliberations: list[Deliberation] = []

    def answered(self, answer: Answer, around: Circumstances, silence: float) -> None:
        """Log the result, and keep the explained decision if it names a node."""
        super().answered(answer, around, silence)
        budgets = self.service.cluster.snapshot().budgets
        release = self.service.engine.rules.release
        told = deliberation_of(answer, budgets, release, around.seconds)
        if told is not None:
            self.deliberations.append(told)
