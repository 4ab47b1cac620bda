"""Common index functions, for :meth:`extender.kube.informers.indexer.Indexer.add_index`.

    pods.add_index(BY_CONTROLLER, controller_of)
    pods.by(BY_CONTROLLER, replica_set.metadata.uid)     the pods that it controls
    pods.add_index(*by_label("app"))
    pods.by("label:app", "web")                          the pods with app=web

An object without a value is not in the index. The objects of an index value are in the order of
arrival, or of the last change that set an object's present version.
"""

from __future__ import annotations

from typing import Final, Protocol

from extender.kube.indexer import IndexBy, IndexedObject

BY_NAMESPACE: Final = "namespace"
BY_CONTROLLER: Final = "controller"
BY_NODE: Final = "node"


class AssignedPodSpec(Protocol):
    """The field of a pod spec that names its node."""

    @property
    def node_name(self) -> str:
        """The name of the node; "" if the pod has none yet."""
        ...


class AssignedPod(IndexedObject, Protocol):
    """A pod that can be indexed by its node."""

    @property
    def spec(self) -> AssignedPodSpec:
        """The pod's spec."""
        ...


def namespace_of(item: IndexedObject) -> tuple[str, ...]:
    """Return the value of ``BY_NAMESPACE``: the object's namespace; nothing if cluster-scoped."""
    return (item.metadata.namespace,) if item.metadata.namespace else ()


def controller_of(item: IndexedObject) -> tuple[str, ...]:
    """Return the value of ``BY_CONTROLLER``: the UID of the object's controller."""
    owner = item.metadata.controller
    return (owner.uid,) if owner else ()


def node_of(pod: AssignedPod) -> tuple[str, ...]:
    """Return the value of ``BY_NODE``: the pod's node, if it has one."""
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def by_label(key: str) -> tuple[str, IndexBy[IndexedObject]]:
    """Return the name and the function of an index by the value of a label."""

    def value_of(item: IndexedObject) -> tuple[str, ...]:
        value = (item.metadata.labels or {}).get(key)
        return () if value is None else (value,)

    return f"label:{key}", value_of
