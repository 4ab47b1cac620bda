"""The extender's answers, taken down as they are given."""

from __future__ import annotations

from extender.journal import Journal
from extender.service import Service
from extender.verdict import Answer, Circumstances
from fakeapi.demo.deliberations import Deliberation, deliberation_of


class Witness(Journal):
    """A journal that keeps what was decided; it must be told of whom before the first answer."""

    service: Service

    def __init__(self) -> None:
        super().__init__()
        self.deliberations: list[Deliberation] = []

    def answered(self, answer: Answer, around: Circumstances, silence: float) -> None:
        """Write the answer, and keep what there is to tell of it."""
        super().answered(answer, around, silence)
        budgets = self.service.cluster.snapshot().budgets
        release = self.service.engine.rules.release
        told = deliberation_of(answer, budgets, release, around.seconds)
        if told is not None:
            self.deliberations.append(told)
