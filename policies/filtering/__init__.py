"""The in-tree filters, one file each: does this pod fit this node; if not, could eviction help.

``IN_TREE`` lists them in kube-scheduler's default order, which matters: a node's status is that of
the first filter that fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from policies.filtering.framework import (
    NOTHING_TO_CHECK,
    Check,
    Filter,
    NodeCheck,
    Pipeline,
    Preparation,
    prepare,
)
from policies.filtering.inter_pod_affinity import InterPodAffinity
from policies.filtering.node_affinity import NodeAffinity
from policies.filtering.node_name import NodeName
from policies.filtering.node_ports import NodePorts
from policies.filtering.node_resources_fit import NodeResourcesFit
from policies.filtering.node_unschedulable import NodeUnschedulable
from policies.filtering.pod_topology_spread import PodTopologySpread
from policies.filtering.taint_toleration import TaintToleration
from policies.model import Pod

IN_TREE: tuple[Filter, ...] = (
    NodeUnschedulable(),
    NodeName(),
    TaintToleration(),
    NodeAffinity(),
    NodePorts(),
    NodeResourcesFit(),
    PodTopologySpread(),
    InterPodAffinity(),
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


def unjudged(pod: Pod) -> frozenset[str]:
    """Name the in-tree filters that ``pod`` calls for but that are not implemented here."""
    return pod.filters - {each.name for each in IN_TREE}


__all__ = [
    "IN_TREE",
    "NOTHING_TO_CHECK",
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
