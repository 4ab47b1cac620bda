"""Cached pods and ReplicaSets, with the indexes that relate them.

No method iterates over all pods: they are found by their controller, as orphans of a namespace, and
by their labels.

Source: replica_set.go (resolveControllerRef, getPodReplicaSets, getIndirectlyRelatedPods),
controller_utils.go (FilterPodsByOwner), client-go's listers (GetPodReplicaSets).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

from extender.controllers.replicaset.types import (
    KIND,
    OwnedPod,
    ReplicaSet,
    decode_pod,
    decode_replica_set,
)
from extender.kube.decoders.object_meta import OwnerReference
from extender.kube.informers.shared_informer import SharedInformerFactory
from extender.kube.rest.resources import PODS, REPLICA_SETS
from policies.kubernetes.selectors import LabelSelector

_BY_CONTROLLER: Final = "replicaset/controller"
_BY_LABEL: Final = "replicaset/label"
_BY_NAMESPACE: Final = "replicaset/namespace"


class ReplicaSetCaches:
    """Caches the pods and the ReplicaSets of a cluster."""

    def __init__(self, informers: SharedInformerFactory) -> None:
        self.pods = informers.of(PODS, decode_pod)
        self.replica_sets = informers.of(REPLICA_SETS, decode_replica_set)
        self.pods.objects.add_index(_BY_CONTROLLER, _controller_keys)
        self.pods.objects.add_index(_BY_LABEL, _label_keys)
        self.replica_sets.objects.add_index(_BY_CONTROLLER, _controller_uids)
        self.replica_sets.objects.add_index(_BY_NAMESPACE, _namespace)

    async def wait_synced(self) -> None:
        """Wait until both informers have synced."""
        await asyncio.gather(self.pods.wait_synced(), self.replica_sets.wait_synced())

    def get(self, key: str) -> ReplicaSet | None:
        """Return the ReplicaSet under ``namespace/name``, or None."""
        return self.replica_sets.objects.get(key)

    def resolve_controller_ref(
        self, namespace: str, controller: OwnerReference
    ) -> ReplicaSet | None:
        """Return the ReplicaSet that a controller reference of a pod refers to, or None.

        Only the reference's kind, name and UID are compared, not its group and version.
        """
        if controller.kind != KIND:
            return None
        found = self.get(f"{namespace}/{controller.name}")
        return found if found is not None and found.metadata.uid == controller.uid else None

    def replica_sets_of_orphan(self, pod: OwnedPod) -> list[ReplicaSet]:
        """Return the ReplicaSets whose selectors match an orphan.

        A pod without labels matches none, and a selector that selects everything matches no pod.
        """
        if not pod.labels:
            return []
        return [
            each
            for each in self.replica_sets.objects.by(_BY_NAMESPACE, pod.metadata.namespace)
            if each.selector and each.selector.requirements and each.selector.matches(pod.labels)
        ]

    def candidates(self, replica_set: ReplicaSet) -> list[OwnedPod]:
        """Return the pods that a ReplicaSet controls, and all orphans of its namespace."""
        meta, pods = replica_set.metadata, self.pods.objects
        reference = OwnerReference(kind=KIND, name=meta.name, uid=meta.uid)
        own = pods.by(_BY_CONTROLLER, _controller_key(meta.namespace, reference))
        return [*own, *pods.by(_BY_CONTROLLER, meta.namespace)]

    def related(self, replica_set: ReplicaSet) -> list[OwnedPod]:
        """Return the pods that the ReplicaSets of the same controller select, each once.

        The owners of the pods do not matter. A ReplicaSet without a controller has no related pods,
        not even its own.
        """
        found: dict[str, OwnedPod] = {}
        for sibling in self.siblings(replica_set):
            if sibling.selector is not None:
                for pod in self._selected(sibling.metadata.namespace, sibling.selector):
                    found.setdefault(pod.metadata.uid, pod)
        return list(found.values())

    def siblings(self, replica_set: ReplicaSet) -> list[ReplicaSet]:
        """Return the ReplicaSets of the same controller, including the given one."""
        controller = replica_set.metadata.controller
        if controller is None:
            return []
        return list(self.replica_sets.objects.by(_BY_CONTROLLER, controller.uid))

    def _selected(self, namespace: str, selector: LabelSelector) -> Iterator[OwnedPod]:
        pods = self.pods.objects
        by_label = [
            pods.by(_BY_LABEL, _label_key(namespace, each.key, each.values[0]))
            for each in selector.requirements
            if each.operator == "In" and len(each.values) == 1
        ]
        fewest = min(by_label, key=len) if by_label else pods.by(_BY_LABEL, namespace)
        return (pod for pod in fewest if selector.matches(pod.labels))


def _controller_keys(pod: OwnedPod) -> tuple[str]:
    """Return the index key of a pod: its controller, or its namespace if it is an orphan."""
    namespace, controller = pod.metadata.namespace, pod.metadata.controller
    return (_controller_key(namespace, controller) if controller else namespace,)


def _controller_key(namespace: str, controller: OwnerReference) -> str:
    return f"{namespace}/{controller.kind}/{controller.name}/{controller.uid}"


def _label_keys(pod: OwnedPod) -> Iterable[str]:
    """Return the keys by which selectors find a pod: its namespace, and each label within it."""
    namespace = pod.metadata.namespace
    return (namespace, *(_label_key(namespace, key, text) for key, text in pod.labels.items()))


def _label_key(namespace: str, key: str, value: str) -> str:
    return f"{namespace}/{key}={value}"


def _controller_uids(replica_set: ReplicaSet) -> tuple[str, ...]:
    controller = replica_set.metadata.controller
    return (controller.uid,) if controller else ()


def _namespace(replica_set: ReplicaSet) -> tuple[str]:
    return (replica_set.metadata.namespace,)
