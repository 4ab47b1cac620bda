"""Guards of victims: pods that are never victims, or not until a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from policies.kubernetes.duration import format_duration
from policies.kubernetes.snapshot import Pod
from policies.preemption.costs.pod_cost import (
    SECOND_NS,
    EvaluationError,
    PodCost,
    Unreadable,
)

UNPROTECTED: Final = -(2**63)
ALWAYS: Final = 2**63 - 1


def _no_reason(_: Pod) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class VictimGuard:
    """Protects a pod until a time: UNPROTECTED, ALWAYS, or nanoseconds since the epoch.

    ``because`` adds to the guard's name why a pod is protected that cannot be read, "" for any
    other. ``annotations`` are the keys that the guard reads.
    """

    name: str
    until_ns: Callable[[Pod], int]
    because: Callable[[Pod], str] = _no_reason
    annotations: frozenset[str] = frozenset()

    def explain(self, pod: Pod, now_ns: int) -> str:
        """Return why a pod is protected."""
        until, reason = self.until_ns(pod), self.because(pod)
        text = f"protected by {self.name}" + (f": {reason}" if reason else "")
        return text if until == ALWAYS else f"{text} for another {format_wait(until - now_ns)}"


def format_wait(wait_ns: int) -> str:
    """Format a time to wait, in full seconds."""
    return format_duration(-(-wait_ns // SECOND_NS) * SECOND_NS)


def protected_pods(name: str, protects: Callable[[Pod], bool]) -> VictimGuard:
    """Return a guard that always protects some pods."""
    return VictimGuard(name, lambda pod: ALWAYS if protects(pod) else UNPROTECTED)


def min_runtime(name: str, selects: Callable[[Pod], bool], least_ns: int) -> VictimGuard:
    """Return a guard that protects pods until they have run for ``least_ns`` nanoseconds.

    A pod that the kubelet has not started is protected, too.
    """

    def until(pod: Pod) -> int:
        if not selects(pod):
            return UNPROTECTED
        return ALWAYS if pod.started_ns is None else pod.started_ns + least_ns

    return VictimGuard(name, until)


def unreadable_cost(cost: PodCost) -> VictimGuard:
    """Return a guard that protects pods whose cost is unknown."""

    def because(pod: Pod) -> str:
        found = cost.of(pod)
        return found.reason if isinstance(found, Unreadable) else ""

    return VictimGuard(
        cost.name,
        lambda pod: ALWAYS if isinstance(cost.of(pod), Unreadable) else UNPROTECTED,
        because,
        cost.annotations,
    )


def protected_by_expression(
    name: str, evaluate: Callable[[Pod], bool], annotations: frozenset[str]
) -> VictimGuard:
    """Return a guard that always protects the pods for which an expression is true.

    It protects a pod for which ``evaluate`` raises EvaluationError, too. ``annotations`` are the
    keys that it reads.
    """

    def protection(pod: Pod) -> tuple[int, str]:
        try:
            return ALWAYS if evaluate(pod) else UNPROTECTED, ""
        except EvaluationError as error:
            return ALWAYS, str(error)

    return VictimGuard(
        name, lambda pod: protection(pod)[0], lambda pod: protection(pod)[1], annotations
    )
