"""Pods with a cost or an expression that has no value, such as an annotation that is no number.

The guards of a policy protect these pods. So that this is noticed, each is logged once, and again
only if the reason changes. A pod is evaluated when it changes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import structlog

from extender.terminal.log_limits import shortened
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.guards.victim_guard import VictimGuard
from policies.preemption.policy import SchedulerRules

MOST_LOGGED: Final = 100
"""While there are more of these pods, new ones are counted and not logged."""


class UnreadableCosts:
    """The pods on nodes that a guard of some rules protects since it cannot read them."""

    def __init__(self, rules: SchedulerRules) -> None:
        self._guards = _victim_guards(rules)
        self._reasons: dict[str, dict[str, str]] = {}
        self._evaluated: dict[str, tuple[Pod, ...]] = {}
        self._log = structlog.get_logger()
        self.count = 0

    def use(self, rules: SchedulerRules, snapshot: Snapshot) -> None:
        """Evaluate all pods by other rules."""
        self._guards = _victim_guards(rules)
        self._evaluated.clear()
        self.follow(snapshot, snapshot.nodes)

    def follow(self, snapshot: Snapshot, changed: Collection[str]) -> None:
        """Evaluate the changed pods on the changed nodes."""
        if not self._guards and not self._reasons:
            return
        for name in changed:
            state, before = snapshot.nodes.get(name), self._reasons.pop(name, {})
            now = self._reasons_on(name, () if state is None else state.pods, before)
            self.count += len(now) - len(before)
            if now:
                self._reasons[name] = now
            if self.count > MOST_LOGGED:
                continue
            for key, reason in now.items():
                if before.get(key) != reason:
                    self._log.warning("cost_unreadable", pod=key, problem=shortened(reason))

    def _reasons_on(
        self, node: str, pods: tuple[Pod, ...], before: dict[str, str]
    ) -> dict[str, str]:
        evaluated = set(map(id, self._evaluated.pop(node, ())))
        if pods and self._guards:
            self._evaluated[node] = pods
        reasons = (
            (pod.key, before.get(pod.key, "") if id(pod) in evaluated else self._reason(pod))
            for pod in pods
        )
        return {key: reason for key, reason in reasons if reason}

    def _reason(self, pod: Pod) -> str:
        reasons = ((guard.name, guard.because(pod)) for guard in self._guards)
        return "; ".join(f"{name}: {reason}" for name, reason in reasons if reason)


def _victim_guards(rules: SchedulerRules) -> tuple[VictimGuard, ...]:
    """Return the guards of all policies, each once."""
    guards = (guard for policy in rules.policies for guard in policy.victim_guards)
    return tuple(dict.fromkeys(guards))
