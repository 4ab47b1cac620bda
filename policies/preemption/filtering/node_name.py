"""NodeName: a pod with spec.nodeName fits no other node; since 1.37 no other is evaluated."""

from __future__ import annotations

from dataclasses import dataclass

from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.filtering.framework import NOTHING_TO_CHECK, NodeFilter, PreFilter
from policies.preemption.filtering.status import Code, unresolvable

REFUSAL = unresolvable(Code.OTHER_NODE)


@dataclass(frozen=True, slots=True)
class NodeName:
    """Source: pkg/scheduler/framework/plugins/nodename."""

    name: str = "NodeName"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:  # noqa: ARG002
        """Compare names, if the pod names a node."""
        requested = pod.node_name
        if requested is None:
            return NOTHING_TO_CHECK
        plugin = NodeFilter(lambda state: None if state.node.name == requested else REFUSAL)
        return PreFilter(plugin, only=frozenset([requested]) if release.node_name_limits else None)
