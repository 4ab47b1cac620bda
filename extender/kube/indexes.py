"""Indexes that most controllers want, for :meth:`extender.kube.indexer.Indexer.add_index`.

    pods.add_index(BY_CONTROLLER, controller_of)
    pods.by(BY_CONTROLLER, replica_set.metadata.uid)     the pods that it controls
    pods.add_index(*by_label("app"))
    pods.by("label:app", "web")                          the pods with app=web

What has no value for an index is not found by it. Whatever an index gives is in the order of
arrival, or of the last change that gave an object its present version.
"""

from __future__ import annotations

from typing import Final, Protocol

from extender.kube.indexer import IndexBy, Thing

BY_NAMESPACE: Final = "namespace"
BY_CONTROLLER: Final = "controller"
BY_NODE: Final = "node"


class Assigned(Protocol):
    """The part of a pod that says where it runs."""

    @property
    def node_name(self) -> str:
        """The node; "" if it has none yet."""
        ...


class PodLike(Thing, Protocol):
    """An object that runs on a node."""

    @property
    def spec(self) -> Assigned:
        """What it is to be."""
        ...


def namespace_of(item: Thing) -> tuple[str, ...]:
    """Return what ``BY_NAMESPACE`` finds an object by; nothing if it is cluster-wide."""
    return (item.metadata.namespace,) if item.metadata.namespace else ()


def controller_of(item: Thing) -> tuple[str, ...]:
    """Return what ``BY_CONTROLLER`` finds an object by: the UID of the owner that controls it."""
    owner = item.metadata.controller
    return (owner.uid,) if owner else ()


def node_of(pod: PodLike) -> tuple[str, ...]:
    """Return what ``BY_NODE`` finds a pod by: its node, if it has one."""
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def by_label(key: str) -> tuple[str, IndexBy[Thing]]:
    """Return an index, and its name, that finds objects by the value of a label."""

    def value_of(item: Thing) -> tuple[str, ...]:
        value = (item.metadata.labels or {}).get(key)
        return () if value is None else (value,)

    return f"label:{key}", value_of
