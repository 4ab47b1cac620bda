"""NodeUnschedulable: a cordoned node refuses pods that do not tolerate the unschedulable taint."""

from __future__ import annotations

from dataclasses import dataclass

from policies.kubernetes.releases import Release
from policies.kubernetes.selectors import Taint
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.filtering.framework import NOTHING_TO_CHECK, NodeFilter, PreFilter
from policies.preemption.filtering.status import Code, unresolvable

CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
REFUSAL = unresolvable(Code.UNSCHEDULABLE)


@dataclass(frozen=True, slots=True)
class NodeUnschedulable:
    """Source: pkg/scheduler/framework/plugins/nodeunschedulable."""

    name: str = "NodeUnschedulable"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:  # noqa: ARG002
        """Refuse cordoned nodes, unless the pod tolerates the taint."""
        if any(toleration.tolerates(CORDON) for toleration in pod.tolerations):
            return NOTHING_TO_CHECK
        return PreFilter(NodeFilter(lambda state: REFUSAL if state.node.unschedulable else None))
