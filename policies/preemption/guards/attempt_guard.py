"""Guards of attempts: when a pod may not preempt at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.costs.groupings import owner_of
from policies.preemption.guards.allowance import recent
from policies.preemption.guards.victim_guard import format_wait


@dataclass(frozen=True, slots=True)
class AttemptGuard:
    """Refuses an attempt; ``refusal`` returns why, or None for an attempt that is allowed."""

    name: str
    refusal: Callable[[Pod, Snapshot], str | None]

    def reason(self, pod: Pod, snapshot: Snapshot) -> str | None:
        """Return the reason of a decision that the guard refuses, or None."""
        refusal = self.refusal(pod, snapshot)
        if refusal is None:
            return None
        return f"not eligible due to {self.name} of the policy: {refusal}."


def preemptor_cooldown(window_ns: int) -> AttemptGuard:
    """Return a guard that lets an owner preempt once within a window."""

    def refusal(pod: Pod, snapshot: Snapshot) -> str | None:
        owner = owner_of(pod)
        times = [
            each.at_ns
            for each in recent(snapshot, window_ns)
            if each.preemptor is not None
            and each.preemptor.uid != pod.uid
            and owner_of(each.preemptor) == owner
        ]
        if not times:
            return None
        left = max(times) + window_ns - snapshot.now_ns
        return f"{owner} has preempted, for another {format_wait(left)}"

    return AttemptGuard("cooldown", refusal)


def preemption_delay(delay_ns: int) -> AttemptGuard:
    """Return a guard that lets a pod wait for ``delay_ns`` nanoseconds before it preempts."""

    def refusal(pod: Pod, snapshot: Snapshot) -> str | None:
        left = pod.waiting_since_ns + delay_ns - snapshot.now_ns
        return f"it waits for another {format_wait(left)}" if left > 0 else None

    return AttemptGuard("preemptionDelay", refusal)
