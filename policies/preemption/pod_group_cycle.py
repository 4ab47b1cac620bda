"""The scheduling cycle of a pod group: which members it takes, and whether it may still succeed.

Members wait until their PodGroup exists and has ``min_count`` pods. Then all that are pending are
tried one after another, each with those before it on their nodes. The group fits if ``min_count``
members have nodes, those that ran before included, and at least one of them is new:

    min_count 3, one member runs       scheduled   remaining
    four are pending                       1           4
    the first two fit nowhere              1           2        may still fit
    the third does not fit either          1           1        hopeless: the last is not tried

Sources: pkg/scheduler/schedule_one_podgroup.go and framework/plugins/gangscheduling, v1.37.0.
Topology constraints and trees of CompositePodGroups are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.pod_groups import PodGroup
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Pod

_SAME = "all pods in a single pod group should have the same"
_POLICIES = {True: "PreemptLowerPriority", False: "Never"}


@dataclass(frozen=True, slots=True)
class PodGroupProgress:
    """The members that have nodes, and those that are still to be tried (PlacementFeasible)."""

    min_count: int
    scheduled: int
    remaining: int

    @property
    def is_satisfied(self) -> bool:
        """Whether enough members have nodes."""
        return self.scheduled >= self.min_count

    @property
    def is_hopeless(self) -> bool:
        """Whether there are not enough members left."""
        return self.scheduled + self.remaining < self.min_count

    def placed(self) -> PodGroupProgress:
        """Return the progress after a member that fits a node."""
        return replace(self, scheduled=self.scheduled + 1, remaining=self.remaining - 1)

    def refused(self) -> PodGroupProgress:
        """Return the progress after a member that fits nowhere."""
        return replace(self, remaining=self.remaining - 1)

    def __str__(self) -> str:
        """Return why the group does not fit, "" if it does."""
        if self.is_satisfied:
            return ""
        state = "cannot be satisfied" if self.is_hopeless else "is not yet satisfied"
        counts = f"{self.scheduled} scheduled, {self.remaining} remaining"
        return f"minCount ({self.min_count}) {state}: {counts}"


def queue_order(members: Iterable[Pod]) -> list[Pod]:
    """Return members in the order in which they are tried; they are passed in that of arrival."""
    return sorted(members, key=lambda member: -member.priority)


def validation_error(
    group: PodGroup, pending: Iterable[Pod], running: Iterable[Pod], release: Release
) -> str | None:
    """Return why a group with these members is not scheduled at all, or None (validatePodGroup)."""
    members = [*pending, *running]
    scheduler = members[0].scheduler_name
    preempts = members[0].preempts
    whose = ""
    if FeatureGate.POD_GROUP_PREEMPTION_POLICY in release.gates:
        preempts, whose = group.preempts, " as the pod group's preemption policy"
    for member in members:
        if member.scheduler_name != scheduler:
            got = f'"{member.scheduler_name}" and "{scheduler}"'
            return f"{_SAME} .spec.schedulerName set, got: {got}"
        if member.priority != group.priority:
            got = f"{member.priority} and {group.priority}"
            return f"{_SAME} priority as the pod group's priority, got {got}"
        if member.preempts != preempts:
            got = f"{_POLICIES[member.preempts]} and {_POLICIES[preempts]}"
            return f"{_SAME} preemption policy{whose}, got {got}"
    return None
