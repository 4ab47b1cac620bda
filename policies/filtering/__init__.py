"""The in-tree filters, one file each: does this pod fit this node; if not, could eviction help.

``IN_TREE`` lists them in kube-scheduler's default order, which matters: a node's status is that of
the first filter that fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from policies.filtering.framework import Check, Filter, NodeCheck, Pipeline, Preparation, prepare
from policies.filtering.node_affinity import NodeAffinity
from policies.filtering.node_name import NodeName
from policies.filtering.node_ports import NodePorts
from policies.filtering.node_resources_fit import NodeResourcesFit
from policies.filtering.node_unschedulable import NodeUnschedulable
from policies.filtering.taint_toleration import TaintToleration
from policies.model import Pod, Snapshot

IN_TREE: tuple[Filter, ...] = (
    NodeUnschedulable(),
    NodeName(),
    TaintToleration(),
    NodeAffinity(),
    NodePorts(),
    NodeResourcesFit(),
)


class UnknownFilterError(ValueError):
    """A filter name that is not in the table; the message lists those that are."""


def named(names: Sequence[str]) -> tuple[Filter, ...]:
    """Give the filters called ``names``, in kube-scheduler's order. Raises UnknownFilterError."""
    known = {each.name: each for each in IN_TREE}
    for name in names:
        if name not in known:
            raise UnknownFilterError(
                f"unknown filter {name!r}; expected some of {', '.join(known)}"
            )
    return tuple(each for each in IN_TREE if each.name in names)


def unjudged(pod: Pod, snapshot: Snapshot) -> frozenset[str]:
    """Name the in-tree filters that concern ``pod`` in this cluster but are not implemented here.

    A pod's own spec calls for some; the required anti-affinity of a pod that already runs calls for
    InterPodAffinity if it speaks of ``pod``.
    """
    names = pod.filters
    if any(
        term.matches(pod, snapshot.namespaces)
        for resident in snapshot.repelling
        for term in resident.anti_affinity
    ):
        names |= {"InterPodAffinity"}
    return names - {each.name for each in IN_TREE}


__all__ = [
    "IN_TREE",
    "Check",
    "Filter",
    "NodeCheck",
    "Pipeline",
    "Preparation",
    "UnknownFilterError",
    "named",
    "prepare",
    "unjudged",
]
