"""Pods with a cost that cannot be read, such as an annotation that is no number.

The guards of a policy protect these pods. So that this is noticed, each is logged once, and again
only if the reason changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import structlog

from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.costs.pod_cost import PodCost, Unreadable
from policies.preemption.policy import SchedulerRules

MOST_LOGGED: Final = 100
"""While more pods than these have such a cost, new ones are counted and not logged."""


class UnreadableCosts:
    """The pods on nodes that have a cost that a policy of some rules cannot read."""

    def __init__(self, rules: SchedulerRules) -> None:
        self._costs = _costs_of_annotations(rules)
        self._reasons: dict[str, dict[str, str]] = {}
        self._log = structlog.get_logger()
        self.count = 0

    def use(self, rules: SchedulerRules, snapshot: Snapshot) -> None:
        """Read the costs of other rules, from all pods."""
        self._costs = _costs_of_annotations(rules)
        self.follow(snapshot, snapshot.nodes)

    def follow(self, snapshot: Snapshot, changed: Collection[str]) -> None:
        """Read the costs of the pods on the changed nodes."""
        if not self._costs and not self._reasons:
            return
        for name in changed:
            before, state = self._reasons.pop(name, {}), snapshot.nodes.get(name)
            now = {} if state is None else dict(self._reasons_of(state.pods))
            self.count += len(now) - len(before)
            if now:
                self._reasons[name] = now
            if self.count > MOST_LOGGED:
                continue
            for key, reason in now.items():
                if before.get(key) != reason:
                    self._log.warning("cost_unreadable", pod=key, problem=reason)

    def _reasons_of(self, pods: Iterable[Pod]) -> Iterator[tuple[str, str]]:
        for pod in pods:
            if not pod.annotations:
                continue
            found = [cost.of(pod) for cost in self._costs]
            reasons = [each.reason for each in found if isinstance(each, Unreadable)]
            if reasons:
                yield pod.key, "; ".join(reasons)


def _costs_of_annotations(rules: SchedulerRules) -> tuple[PodCost, ...]:
    """Return the costs that read annotations: no other cost can be unreadable."""
    costs = (cost for policy in rules.policies for cost in policy.costs if cost.annotations)
    return tuple(dict.fromkeys(costs))
