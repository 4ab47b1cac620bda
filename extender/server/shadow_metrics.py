"""Metrics of shadow policies: how their choices differ from those that were answered.

The cost of a choice is counted for both, in the same decisions, so that its difference can be
plotted over any interval.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from extender.ledger.choice_cost import ChoiceCost, choice_cost, differs
from extender.ledger.entry import LedgerEntry

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_CHOICES: Final = ("live", "shadow")
_MILLICORES: Final = 1000


class ShadowMetrics:
    """Counters by shadow policy; ``choice`` is ``live`` or ``shadow``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, meaning: str, *labels: str) -> Counter:
            return Counter(f"reprieve_shadow_{name}", meaning, labels, registry=registry)

        self.decisions = counter("decisions", "Preempt calls decided by a shadow policy", "policy")
        self.differences = counter(
            "differences", "Those in which its node or victims are others", "policy"
        )
        self.refusals = counter("refusals", "Choices of no node", "policy", "choice")
        self.victims = counter("victims", "Victims of the choices", "policy", "choice")
        self.violations = counter(
            "budget_violations", "Disruption budgets violated by victims", "policy", "choice"
        )
        self.lost_cpu = counter(
            "lost_core_seconds", "Requested cores by seconds of the victims", "policy", "choice"
        )
        self.lost_devices = counter(
            "lost_device_seconds",
            "Requested extended resources by seconds of the victims",
            "policy",
            "choice",
        )
        self.dropped = counter("decisions_dropped", "Decisions that were not made: too many waited")
        self.seconds = Histogram(
            "reprieve_shadow_seconds",
            "Time of a decision of a shadow policy",
            ("policy",),
            buckets=_BUCKETS,
            registry=registry,
        )

    def initialize(self, policy: str) -> None:
        """Initialize the series of a policy to 0."""
        for each in (self.decisions, self.differences, self.seconds):
            each.labels(policy)
        for choice in _CHOICES:
            self._add(policy, choice, ChoiceCost())

    def observe(self, policy: str, live: LedgerEntry, shadow: LedgerEntry, seconds: float) -> None:
        """Count what a shadow policy would have chosen, beside the choice that was answered."""
        self.decisions.labels(policy).inc()
        self.differences.labels(policy).inc(differs(live, shadow))
        self.seconds.labels(policy).observe(seconds)
        for choice, entry in zip(_CHOICES, (live, shadow), strict=True):
            self._add(policy, choice, choice_cost(entry))

    def _add(self, policy: str, choice: str, cost: ChoiceCost) -> None:
        self.refusals.labels(policy, choice).inc(cost.refusals)
        self.victims.labels(policy, choice).inc(cost.victims)
        self.violations.labels(policy, choice).inc(cost.violations)
        self.lost_cpu.labels(policy, choice).inc(cost.cpu / _MILLICORES)
        self.lost_devices.labels(policy, choice).inc(cost.devices)
