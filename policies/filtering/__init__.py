"""The in-tree filters, one file each: does this pod fit this node; if not, could eviction help.

``IN_TREE`` lists them in kube-scheduler's default order, which matters: a node's status is that of
the first filter that fails. ``configured`` gives the same filters as a kube-scheduler's own
configuration changes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
from policies.model import Pod, SpreadConstraint
from policies.selectors import NodeSelector

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


@dataclass(frozen=True, slots=True)
class Settings:
    """What kube-scheduler's configuration changes about its in-tree filters.

    See :class:`NodeResourcesFit`, :class:`NodeAffinity` and :class:`PodTopologySpread`.
    """

    ignored: frozenset[str] = field(default_factory=frozenset)
    ignored_groups: frozenset[str] = field(default_factory=frozenset)
    added_affinity: NodeSelector | None = None
    default_spread: tuple[SpreadConstraint, ...] = ()


def configured(settings: Settings) -> tuple[Filter, ...]:
    """Give the in-tree filters as ``settings`` change them; without any they equal IN_TREE."""
    changed: dict[str, Filter] = {
        each.name: each
        for each in (
            NodeResourcesFit(ignored=settings.ignored, ignored_groups=settings.ignored_groups),
            NodeAffinity(added=settings.added_affinity),
            PodTopologySpread(defaults=settings.default_spread),
        )
    }
    return tuple(changed.get(each.name, each) for each in IN_TREE)


class UnknownFilterError(ValueError):
    """A filter name that is not in the table; the message lists those that are."""


def named(names: Sequence[str], among: Sequence[Filter] = IN_TREE) -> tuple[Filter, ...]:
    """Give the filters called ``names``, in kube-scheduler's order. Raises UnknownFilterError."""
    known = {each.name: each for each in among}
    for name in names:
        if name not in known:
            raise UnknownFilterError(
                f"unknown filter {name!r}; expected some of {', '.join(known)}"
            )
    return tuple(each for each in among if each.name in names)


def complete(filters: Sequence[Filter]) -> bool:
    """Tell whether ``filters`` are all of kube-scheduler's, however they are configured."""
    return [each.name for each in filters] == [each.name for each in IN_TREE]


def reads_workloads(filters: Sequence[Filter]) -> bool:
    """Tell whether any of ``filters`` needs to know Services and controllers."""
    return any(isinstance(each, PodTopologySpread) and each.defaults for each in filters)


def unjudged(pod: Pod) -> frozenset[str]:
    """Name the in-tree filters that ``pod`` calls for but that are not implemented here."""
    return pod.filters - {each.name for each in IN_TREE}


__all__ = [
    "IN_TREE",
    "NOTHING_TO_CHECK",
    "Check",
    "Filter",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeCheck",
    "NodeName",
    "NodePorts",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "Pipeline",
    "PodTopologySpread",
    "Preparation",
    "Settings",
    "TaintToleration",
    "UnknownFilterError",
    "complete",
    "configured",
    "named",
    "prepare",
    "reads_workloads",
    "unjudged",
]
