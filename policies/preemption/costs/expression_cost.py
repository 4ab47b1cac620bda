"""A cost that an expression computes from a pod. The expression's language is unknown here."""

from __future__ import annotations

from collections.abc import Callable

from policies.kubernetes.snapshot import Pod
from policies.preemption.costs.pod_cost import Cost, PodCost, Unreadable, bounded_cost


class EvaluationError(ValueError):
    """An expression has no value for a pod; the message is the reason, in one line."""


def expression_cost(
    name: str, evaluate: Callable[[Pod], int], annotations: frozenset[str]
) -> PodCost:
    """Return the cost that ``evaluate`` computes, clamped as all costs are.

    The cost of a pod for which ``evaluate`` raises EvaluationError is unknown. ``annotations`` are
    the keys that it reads.
    """

    def of(pod: Pod) -> Cost | Unreadable:
        try:
            return bounded_cost(evaluate(pod))
        except EvaluationError as error:
            return Unreadable(str(error))

    return PodCost(name, "as the expression defines it", of, annotations)
