"""Filtering where pods are on their way out, but still there.

kube-scheduler may know already that a pod has left when the watch does not show it yet. A departing
pod may take room or repel, but it may also be the one that attracts; so what a node is refused for
has to hold both without the departing pods and with them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from policies.model import Pod, Snapshot


def reach_far(pod: Pod, snapshot: Snapshot) -> bool:
    """Return whether departing pods can matter to other nodes than their own: to anti-affinity."""
    return bool(pod.anti_affinity or snapshot.repelling)


def without_departing(snapshot: Snapshot, names: Collection[str]) -> Snapshot:
    """Return the snapshot without the departing pods on some nodes; itself if there are none."""
    departing = {
        name: [pod for pod in snapshot.nodes[name].pods if pod.departing] for name in names
    }
    left = {name: snapshot.nodes[name].without(pods) for name, pods in departing.items() if pods}
    if not left:
        return snapshot
    gone = {pod.uid for pods in departing.values() for pod in pods}
    repelling = tuple(pod for pod in snapshot.repelling if pod.uid not in gone)
    return replace(snapshot, nodes={**snapshot.nodes, **left}, repelling=repelling)
