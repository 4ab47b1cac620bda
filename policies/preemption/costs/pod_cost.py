"""The cost of the eviction of one pod, as a linear function of time.

A cost is read from the pod once, when the pod changes. The time of a decision enters as a product
with the rate, so that a decision evaluates nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from policies.kubernetes.snapshot import Pod

SECOND_NS: Final = 10**9
MAX_RATE: Final = 2**28
MAX_COST: Final = 2**44
"""Rates and costs are clamped, so that those of 250,000 pods can be summed in 64 bits."""


@dataclass(frozen=True, slots=True)
class Cost:
    """An integer that is ``fixed``, plus ``rate`` for each second since ``since_seconds``.

    ``since_seconds`` counts from the epoch: times in the API have no fractions. Nothing accrues
    before it.
    """

    fixed: int = 0
    rate: int = 0
    since_seconds: int = 0

    def at(self, now_ns: int) -> int:
        """Return the cost at a time, clamped to ±MAX_COST."""
        seconds = max(0, now_ns // SECOND_NS - self.since_seconds)
        return clamp(self.fixed + self.rate * seconds)


def bounded_cost(fixed: int = 0, rate: int = 0, since_ns: int = 0) -> Cost:
    """Return a cost whose numbers are within the bounds of 64-bit columns."""
    return Cost(clamp(fixed), clamp(rate, MAX_RATE), max(0, since_ns // SECOND_NS))


def clamp(amount: int, limit: int = MAX_COST) -> int:
    """Return an amount within ±``limit``."""
    return max(-limit, min(amount, limit))


NO_COST: Final = Cost()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why the cost of a pod is unknown; the policy protects such a pod."""

    reason: str


class EvaluationError(ValueError):
    """An expression or a plugin has no value for a pod; the message is the reason, in one line."""


@dataclass(frozen=True, slots=True)
class PodCost:
    """A named cost of the eviction of a pod, in ``unit``; ``annotations`` are the keys it reads.

    ``may_be_unknown`` is true if it may be unreadable for some pods.
    """

    name: str
    unit: str
    of: Callable[[Pod], Cost | Unreadable]
    annotations: frozenset[str] = frozenset()
    may_be_unknown: bool = False

    def at(self, pod: Pod, now_ns: int) -> int:
        """Return the cost of a pod at a time; 0 if it is unreadable."""
        cost = self.of(pod)
        return cost.at(now_ns) if isinstance(cost, Cost) else 0
