"""Filtering while departing pods are still in the snapshot.

A pod is departing if it is terminating or a victim of an assumed preemption. kube-scheduler may
already know that it is gone when the watch does not show it yet. A departing pod may use resources
or repel the preemptor, but it may also be the pod that attracts it. So a node is refused only if it
is refused both without the departing pods and with them. In the same way a nominated pod that may
be assumed counts as assumed or as merely nominated: kube-scheduler, which knows it, has found room.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from policies.kubernetes.snapshot import NodeState, Pod, Snapshot


def affects_other_nodes(pod: Pod, snapshot: Snapshot) -> bool:
    """Return whether departing pods affect other nodes than their own, through anti-affinity."""
    return bool(pod.anti_affinity or snapshot.pods_with_anti_affinity)


def without_departing(snapshot: Snapshot, names: Collection[str]) -> Snapshot:
    """Return the snapshot without the departing pods of some nodes; itself if nothing changes.

    The nominated pods of these nodes count as not assumed.
    """
    changed: dict[str, NodeState] = {}
    uids: set[str] = set()
    for name in names:
        state = snapshot.nodes[name]
        departing = [pod for pod in state.pods if pod.departing]
        if departing or any(pod.may_be_assumed for pod in state.nominated):
            nominated = tuple(replace(pod, may_be_assumed=False) for pod in state.nominated)
            changed[name] = replace(state.without_pods(departing), nominated=nominated)
            uids.update(pod.uid for pod in departing)
    if not changed:
        return snapshot
    return replace(
        snapshot,
        nodes={**snapshot.nodes, **changed},
        pods_with_anti_affinity=tuple(
            pod for pod in snapshot.pods_with_anti_affinity if pod.uid not in uids
        ),
    )
