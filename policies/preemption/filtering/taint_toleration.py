"""TaintToleration: the pod must tolerate all NoSchedule and NoExecute taints of a node."""

from __future__ import annotations

from dataclasses import dataclass

from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.releases import Release, TaintReason
from policies.kubernetes.selectors import Taint, Toleration, untolerated
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.filtering.framework import NodeFilter, PreFilter
from policies.preemption.filtering.status import Code, Rejection, unresolvable


@dataclass(frozen=True, slots=True)
class TaintToleration:
    """Source: pkg/scheduler/framework/plugins/tainttoleration."""

    name: str = "TaintToleration"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:  # noqa: ARG002
        """Refuse nodes with an untolerated taint, in the release's words."""
        tolerations = effective_tolerations(pod, release)

        def rule(state: NodeState) -> Rejection | None:
            taint = untolerated(state.node.taints, tolerations)
            return None if taint is None else refusal(taint, release)

        return PreFilter(NodeFilter(rule))


def effective_tolerations(pod: Pod, release: Release) -> tuple[Toleration, ...]:
    """Return the tolerations of ``pod`` without the numeric ones, unless their gate is on.

    Source: k8s.io/api/core/v1 (toleration.go, ToleratesTaint).
    """
    if FeatureGate.TAINT_TOLERATION_COMPARISON_OPERATORS in release.gates:
        return pod.tolerations
    return tuple(each for each in pod.tolerations if not each.compares)


def refusal(taint: Taint, release: Release) -> Rejection:
    """Return the rejection for ``taint`` in the words of the release."""
    if release.taint_reason is TaintReason.COUNTED:
        return unresolvable(Code.UNTOLERATED_TAINTS)
    return unresolvable(Code.UNTOLERATED_TAINT, f"{taint.key}: {taint.value}")
