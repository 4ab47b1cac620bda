"""Filtering while departing pods are still in the snapshot.

A pod is departing if it is terminating or a victim of an assumed preemption. kube-scheduler may
already know that it is gone when the watch does not show it yet. A departing pod may use resources
or repel the preemptor, but it may also be the pod that attracts it. So a node is refused only if it
is refused both without the departing pods and with them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from policies.kubernetes.snapshot import Pod, Snapshot


def affects_other_nodes(pod: Pod, snapshot: Snapshot) -> bool:
    """Return whether departing pods affect other nodes than their own, through anti-affinity."""
    return bool(pod.anti_affinity or snapshot.pods_with_anti_affinity)


def without_departing(snapshot: Snapshot, names: Collection[str]) -> Snapshot:
    """Return the snapshot without the departing pods of some nodes; itself if there are none."""
    departing = {
        name: [pod for pod in snapshot.nodes[name].pods if pod.departing] for name in names
    }
    changed = {
        name: snapshot.nodes[name].without_pods(pods) for name, pods in departing.items() if pods
    }
    if not changed:
        return snapshot
    uids = {pod.uid for pods in departing.values() for pod in pods}
    return replace(
        snapshot,
        nodes={**snapshot.nodes, **changed},
        pods_with_anti_affinity=tuple(
            pod for pod in snapshot.pods_with_anti_affinity if pod.uid not in uids
        ),
    )
