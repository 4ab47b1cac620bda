"""Filtering while pods are in the snapshot that kube-scheduler may have left out.

A pod is departing if it is terminating or a victim of an assumed preemption. kube-scheduler may
already know that it is gone when the watch does not show it yet. A departing pod may use resources
or repel the preemptor, but it may also be the pod that attracts it. So a node is refused only if it
is refused both without the departing pods and with them. In the same way a nominated pod that may
be assumed counts as assumed or as merely nominated: kube-scheduler, which knows it, has found room.

The same holds for the members of a pod group. To find out whether the group could preempt,
kube-scheduler removes every possible victim of the cluster from its snapshot and filters again, and
nothing in the call shows it. So a node is not refused for a reason that pods of lower priority
cause. A pod of a group that is missing may have any priority and counts as lower. Source:
selectVictimsOnDomain in pkg/scheduler/framework/preemption/podgrouppreemption.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from policies.kubernetes.releases import Release
from policies.kubernetes.shared_mapping import with_entries
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.victim_units import units_for_pod_groups


def affects_other_nodes(pod: Pod, snapshot: Snapshot) -> bool:
    """Return whether departing pods affect other nodes than their own, through anti-affinity."""
    return bool(pod.anti_affinity or snapshot.pods_with_anti_affinity)


def without_departing(snapshot: Snapshot, names: Iterable[str]) -> Snapshot:
    """Return the snapshot without the departing pods of some nodes; itself if nothing changes.

    The nominated pods of these nodes count as not assumed.
    """
    changed: dict[str, NodeState] = {}
    uids: set[str] = set()
    for name in names:
        state = snapshot.nodes[name]
        departing = [pod for pod in state.pods if pod.departing]
        if departing or any(pod.may_be_assumed for pod in state.nominated):
            changed[name] = _remaining(state, departing)
            uids.update(pod.uid for pod in departing)
    if not changed:
        return snapshot
    return replace(
        snapshot,
        nodes=with_entries(snapshot.nodes, changed),
        pods_with_anti_affinity=tuple(
            pod for pod in snapshot.pods_with_anti_affinity if pod.uid not in uids
        ),
    )


def may_be_simulated(pod: Pod, release: Release) -> bool:
    """Return whether ``pod`` may be filtered with all possible victims of its group removed.

    A member that is to be resized is scheduled by itself.
    """
    return bool(pod.group) and release.simulates_pod_groups and not pod.resize_deferred


def without_pods(snapshot: Snapshot, leaves: Callable[[Pod], bool]) -> Snapshot:
    """Return the snapshot without the pods that leave; the state of a node is built when read.

    All nominated pods count as not assumed.
    """
    return replace(
        snapshot,
        nodes=_RemainingNodes(snapshot.nodes, leaves),
        pods_with_anti_affinity=tuple(
            pod for pod in snapshot.pods_with_anti_affinity if not leaves(pod)
        ),
    )


@dataclass(frozen=True, slots=True)
class PossibleVictims:
    """The pods that a pod group of ``priority`` may have removed.

    ``includes`` returns whether a pod is one of them.
    """

    priority: int
    includes: Callable[[Pod], bool]


def possible_victims(member: Pod, snapshot: Snapshot, release: Release) -> PossibleVictims:
    """Return the pods that may be removed while a ``member`` of a pod group is filtered."""
    units = units_for_pod_groups(snapshot, release)
    priority = units.priority_of(member)

    def includes(pod: Pod) -> bool:
        return (
            pod.departing
            or units.priority_of(pod) < priority
            or units.missing_group(pod) is not None
        )

    return PossibleVictims(priority, includes)


@dataclass(frozen=True, slots=True)
class _RemainingNodes(Mapping[str, NodeState]):
    states: Mapping[str, NodeState]
    leaves: Callable[[Pod], bool]

    def __getitem__(self, name: str) -> NodeState:
        state = self.states[name]
        return _remaining(state, [pod for pod in state.pods if self.leaves(pod)])

    def __iter__(self) -> Iterator[str]:
        return iter(self.states)

    def __len__(self) -> int:
        return len(self.states)


def _remaining(state: NodeState, leaving: Collection[Pod]) -> NodeState:
    """Return the state of a node without some pods, and with none that may be assumed."""
    nominated = not_assumed(state.nominated)
    if not leaving and nominated == state.nominated:
        return state
    return structs.replace(state.without_pods(leaving), nominated=nominated)


def not_assumed(nominated: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return nominated pods as pods that are not assumed."""
    return tuple(
        structs.replace(pod, may_be_assumed=False) if pod.may_be_assumed else pod
        for pod in nominated
    )
