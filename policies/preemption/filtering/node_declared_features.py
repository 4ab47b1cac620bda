"""NodeDeclaredFeatures: a node has to declare the features that the pod requires."""

from __future__ import annotations

from dataclasses import dataclass

from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.filtering.framework import NOTHING_TO_CHECK, NodeFilter, PreFilter
from policies.preemption.filtering.status import Code, unresolvable

REFUSAL = unresolvable(Code.UNDECLARED_FEATURES)


@dataclass(frozen=True, slots=True)
class NodeDeclaredFeatures:
    """Source: pkg/scheduler/framework/plugins/nodedeclaredfeatures.

    It is the last filter. So a full node without the feature has the status of an earlier one, and
    preemption tries it in vain.
    """

    name: str = "NodeDeclaredFeatures"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:  # noqa: ARG002
        """Refuse nodes without a required feature, where ``release`` has the filter."""
        required = pod.required_features
        if FeatureGate.NODE_DECLARED_FEATURES not in release.gates or not required:
            return NOTHING_TO_CHECK
        return PreFilter(
            NodeFilter(lambda state: None if required <= state.node.declared_features else REFUSAL)
        )
