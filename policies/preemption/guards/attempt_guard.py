"""Guards of attempts: when a pod may not preempt at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from policies.kubernetes.policy_objects import EVENT
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.costs.groupings import owner_of
from policies.preemption.guards.allowance import recent
from policies.preemption.guards.victim_guard import format_wait


@dataclass(frozen=True, slots=True)
class AttemptGuard:
    """Refuses an attempt; ``refusal`` returns why, or None for an attempt that is allowed.

    ``reads`` is the kind of objects that it reads, if only policies do.
    """

    name: str
    refusal: Callable[[Pod, Snapshot], str | None]
    reads: str = ""

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


def wait_for_autoscaler(wait_ns: int) -> AttemptGuard:
    """Return a guard of pods for which an autoscaler has announced a node.

    Such a pod waits until ``wait_ns`` nanoseconds after the last announcement.
    """

    def refusal(pod: Pod, snapshot: Snapshot) -> str | None:
        announced_ns = snapshot.policy_objects.announced_ns.get(pod.uid)
        left = 0 if announced_ns is None else announced_ns + wait_ns - snapshot.now_ns
        if left <= 0:
            return None
        return f"it waits for an announced node, for another {format_wait(left)}"

    return AttemptGuard("waitForAutoscaler", refusal, EVENT)


def preemption_delay(delay_ns: int) -> AttemptGuard:
    """Return a guard that lets a pod wait for ``delay_ns`` nanoseconds before it preempts."""

    def refusal(pod: Pod, snapshot: Snapshot) -> str | None:
        left = pod.waiting_since_ns + delay_ns - snapshot.now_ns
        return f"it waits for another {format_wait(left)}" if left > 0 else None

    return AttemptGuard("preemptionDelay", refusal)
