"""The pods that belong to a ReplicaSet, and its related pods.

Related pods are those that any ReplicaSet of the same controller selects, such as the pods of all
revisions of a Deployment: a pod on a node with many of them is preferred for deletion. A ReplicaSet
without a controller has no related pods, not even its own.

Source: getIndirectlyRelatedPods and getPodsRankedByRelatedPodsOnSameNode in
pkg/controller/replicaset/replica_set.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from policies.kubernetes.selectors import Labels, LabelSelector
from policies.replicaset.pod_ranking import RankedPod


class RelatedPod(Protocol):
    """The properties of a related pod that count."""

    @property
    def uid(self) -> str:
        """The pod's UID, which identifies it."""
        ...

    @property
    def node(self) -> str:
        """The node that it runs on; empty if it is not scheduled."""
        ...

    @property
    def active(self) -> bool:
        """Whether it is neither finished nor terminating."""
        ...


@dataclass(frozen=True, slots=True)
class ReplicaSetPod:
    """A pod with its labels and its controller; ``owner`` is the UID of the controller."""

    replica: RankedPod
    labels: Labels
    owner: str | None
    active: bool

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.replica.namespace}/{self.replica.name}"

    @property
    def uid(self) -> str:
        """The pod's UID."""
        return self.replica.uid

    @property
    def node(self) -> str:
        """The node that it runs on; empty if it is not scheduled."""
        return self.replica.node


@dataclass(frozen=True, slots=True)
class ReplicaSet:
    """A ReplicaSet; ``owner`` is the UID of its controller, ``selector`` None selects none."""

    namespace: str
    name: str
    uid: str
    owner: str | None
    selector: LabelSelector | None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    def selects(self, pod: ReplicaSetPod) -> bool:
        """Return whether a pod is in its namespace and matches its selector."""
        if self.selector is None or pod.replica.namespace != self.namespace:
            return False
        return self.selector.matches(pod.labels)


def claimed_pods(replica_set: ReplicaSet, pods: Iterable[ReplicaSetPod]) -> list[RankedPod]:
    """Return the active pods that a ReplicaSet controls and selects: those that it may delete.

    A pod that it no longer selects is about to be released. An orphan is not adopted yet. A
    ReplicaSet without a selector, which no API server would store, keeps the pods that it controls.
    """
    return [
        pod.replica
        for pod in pods
        if pod.active
        and pod.owner == replica_set.uid
        and pod.replica.namespace == replica_set.namespace
        and (replica_set.selector is None or replica_set.selects(pod))
    ]


def siblings(replica_set: ReplicaSet, among: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Return the ReplicaSets with the same controller, itself included; none if it has none."""
    if replica_set.owner is None:
        return []
    return [each for each in among if each.owner == replica_set.owner]


def indirectly_related_pods(
    replica_set: ReplicaSet, among: Iterable[ReplicaSet], pods: Iterable[ReplicaSetPod]
) -> list[ReplicaSetPod]:
    """Return the pods that a ReplicaSet or a sibling selects, whatever their owner."""
    family = siblings(replica_set, among)
    return [pod for pod in pods if any(each.selects(pod) for each in family)]


def related_pods_per_node(related: Iterable[RelatedPod]) -> Mapping[str, int]:
    """Count the active related pods by node; unscheduled pods count under the node ``""``.

    A pod that occurs twice counts once.
    """
    active = {pod.uid: pod.node for pod in related if pod.active}
    return Counter(active.values())
