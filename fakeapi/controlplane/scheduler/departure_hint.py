"""Which nodes may help a waiting pod when another pod leaves them: a more precise queueing hint.

kube-scheduler tries a pod that lacks resources again after each deletion of a scheduled pod,
whatever its node. With a long backlog nearly all of these attempts fail. An attempt is left out if
it must fail:

- no node has a candidate for preemption: even without its pods of lower priority, none has room;
- so a node can only help after a pod that is not of lower priority has left it, and only if the pod
  then has room beside those that are left;
- a node that rejects the pod for another reason than its pods cannot help by their departure.

Pods that are nominated to a node count as in any attempt.

Source of the rule: dry runs remove all pods of lower priority first
(:mod:`policies.preemption.victims.victim_selection`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fakeapi.controlplane.scheduler.scheduling_queue import (
    RESOURCE_EVENTS,
    ClusterEvent,
    events_that_may_help,
)
from policies.kubernetes.pod_groups import NO_POD_GROUPS
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.filtering import NodeResourcesFit, Pipeline
from policies.preemption.filtering.status import Rejection, group_by_rejection
from policies.preemption.policy import SchedulerRules


@dataclass(frozen=True, slots=True)
class DepartureHint:
    """The hint of pods for which no node has room; ``nodes`` reject them because of their pods.

    ``nominated`` are those to which other pods are nominated.
    """

    scheduler: str
    priority: int
    requests: tuple[tuple[str, int], ...]
    nodes: frozenset[str]
    nominated: frozenset[str] = field(compare=False)
    room: Pipeline = field(compare=False)

    def may_help(self, state: NodeState) -> bool:
        """Return whether a node has room without its pods of lower priority."""
        if state.node.name not in self.nodes:
            return False
        lower = [each for each in state.pods if each.priority < self.priority]
        return self.room.refuse(state.without_pods(lower)) is None


def departure_hint(
    pod: Pod, snapshot: Snapshot, rules: SchedulerRules, statuses: Mapping[str, Rejection]
) -> DepartureHint | None:
    """Return the hint of a pod without a candidate; None if pods on other nodes matter too.

    Some filters count those, and units of several pods have other priorities than their pods.
    """
    fit = next((each for each in rules.filters if isinstance(each, NodeResourcesFit)), None)
    if fit is None or snapshot.pod_groups != NO_POD_GROUPS or len(statuses) < len(snapshot.nodes):
        return None
    nodes: list[str] = []
    for rejection, names in group_by_rejection(statuses):
        awaited = events_that_may_help((rejection,))
        if not awaited <= RESOURCE_EVENTS:
            return None
        if ClusterEvent.POD_GONE in awaited:
            nodes += names
    plugin = fit.pre_filter(pod, snapshot, rules.release).plugin
    if plugin is None:
        return None
    nominated = frozenset(name for name in nodes if snapshot.nodes[name].nominated)
    room = Pipeline(pod, (plugin,), scheduler_names=rules.scheduler_names)
    requests = tuple(fit.counted(pod.requests))
    return DepartureHint(
        pod.scheduler_name, pod.priority, requests, frozenset(nodes), nominated, room
    )
