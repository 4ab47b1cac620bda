"""NodeAffinity: the pod's nodeSelector and required node affinity must match the node.

The affinity that kube-scheduler's configuration adds for all its pods is checked first.

Terms that all name nodes (``matchFields`` on ``metadata.name``, as daemon pods have) limit the
nodes that are evaluated; terms that contradict themselves refuse every node at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.kubernetes.releases import Release
from policies.kubernetes.selectors import NodeSelector
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.filtering.framework import NOTHING_TO_CHECK, NodeFilter, PreFilter
from policies.preemption.filtering.status import Code, Rejection, unresolvable

REFUSAL = unresolvable(Code.NODE_AFFINITY)
ENFORCED = unresolvable(Code.ENFORCED_AFFINITY)


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """Source: pkg/scheduler/framework/plugins/nodeaffinity; ``added`` is its addedAffinity."""

    name: str = "NodeAffinity"
    added: NodeSelector | None = None

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:  # noqa: ARG002
        """Match the node's labels and name, if the pod has a selector or affinity."""
        affinity, added = pod.node_affinity, self.added
        if affinity is None and added is None and not pod.node_selector:
            return NOTHING_TO_CHECK
        named = None if affinity is None else affinity.named()
        if named is not None and not named:
            return PreFilter(conflict=unresolvable(Code.AFFINITY_CONFLICT))

        def rule(state: NodeState) -> Rejection | None:
            labels = state.node.labels
            if added is not None and not added.matches(state.node.name, labels):
                return ENFORCED
            if not all(requirement.matches(labels) for requirement in pod.node_selector):
                return REFUSAL
            fits = affinity is None or affinity.matches(state.node.name, labels)
            return None if fits else REFUSAL

        return PreFilter(NodeFilter(rule), only=named)
