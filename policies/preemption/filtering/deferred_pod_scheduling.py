"""DeferredPodScheduling: a pod whose in-place resize is deferred fits no node but its own."""

from __future__ import annotations

from dataclasses import dataclass

from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.filtering.framework import NOTHING_TO_CHECK, NodeFilter, PreFilter
from policies.preemption.filtering.status import Code, Rejection, unresolvable

OTHER_NODE = unresolvable(Code.ASSIGNED_ELSEWHERE)
DISABLED = unresolvable(Code.RESIZE_PREEMPTION_DISABLED)


@dataclass(frozen=True, slots=True)
class DeferredPodScheduling:
    """Source: pkg/scheduler/framework/plugins/deferredpodscheduling."""

    name: str = "DeferredPodScheduling"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:  # noqa: ARG002 - see Filter
        """Refuse other nodes, and the pod's own if it disables preemption for resizes."""
        if not pod.resize_deferred:
            return NOTHING_TO_CHECK

        def rule(state: NodeState) -> Rejection | None:
            if state.node.name != pod.node_name:
                return OTHER_NODE
            return DISABLED if state.node.resize_preemption_disabled else None

        return PreFilter(NodeFilter(rule))
