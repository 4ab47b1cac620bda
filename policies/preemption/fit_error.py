"""The message of the FailedScheduling event: why no node fits, then the result of preemption.

Both engines count reasons; this module renders them. Sources: FitError.Error in
pkg/scheduler/framework/types.go, handleSchedulingFailure in pkg/scheduler/schedule_one.go, and
pkg/scheduler/framework/preemption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Snapshot
from policies.preemption.decision import Candidate
from policies.preemption.filtering import deallocation_result, is_claim_conflict
from policies.preemption.filtering.status import (
    Code,
    FilterDecision,
    Reason,
    Rejection,
    fit_message,
)

NO_NODES = "no nodes available to schedule pods"
"""The message without any nodes, before filtering (ErrNoNodesAvailable in schedule_one.go)."""
_NO_STATE = "not found"  # ErrNotFound of framework.CycleState
_PREFIX = "preemption: "
_NOT_HELPFUL = Reason(Code.NOT_HELPFUL)


def fit_error(
    nodes: int, conflict: Rejection | None, reasons: Mapping[Reason, int], release: Release
) -> str:
    """Return the event's first sentence: how many of ``nodes`` nodes were refused for which reason.

    A ``conflict``, which refuses every node, is the only reason.
    """
    if conflict is not None:
        return f"0/{nodes} nodes are available: {conflict}."
    counted = {
        reason: count
        for reason, count in reasons.items()
        if reason.code is not Code.NOT_EXAMINED or release.names_unexamined_nodes
    }
    return fit_message(nodes, counted)


def deallocation_prefix(filtering: FilterDecision, snapshot: Snapshot, release: Release) -> str:
    """Return the beginning of the second sentence if preemption does not help.

    The PostFilter of DynamicResources runs first; from 1.34 to 1.36 its result is part of the
    message.
    """
    return (
        f"{deallocation_result(filtering, snapshot, release)}, " if release.mentions_claims else ""
    )


def deallocation_error(filtering: FilterDecision, release: Release) -> str:
    """Return the second sentence if the PostFilter of DynamicResources fails, else "".

    It reads what the PreFilter of DynamicResources has stored. If an earlier PreFilter refuses
    every node, nothing is stored, and preemption does not run after this error.
    """
    conflict = filtering.conflict
    has_claims = FeatureGate.DYNAMIC_RESOURCE_ALLOCATION in release.gates
    if conflict is None or not has_claims or is_claim_conflict(conflict):
        return ""
    return _NO_STATE


def not_eligible(reason: str, first: str) -> str:
    """Return the second sentence for a pod that may not preempt; it begins with ``first``."""
    return f"{first}{_PREFIX}{reason}"


def candidate_found(best: Candidate, release: Release) -> str:
    """Return the second sentence for a pod with a candidate; most releases have none."""
    if not release.announces_placement:
        return ""
    return (
        f"{_PREFIX}found a potential placement for pod on node {best.node}, "
        f"preempting {len(best.victims.pods)} victims"
    )


def no_candidates(
    nodes: int, tried: int, reasons: Mapping[Reason, int], errors: Sequence[str], first: str
) -> str:
    """Return the second sentence if none of ``nodes`` nodes is a candidate.

    ``reasons`` counts why the ``tried`` ones failed; preemption could not help on the others.
    ``errors`` are nodes where, unexpectedly, no victim was needed: with any, the sentence contains
    only these. Otherwise it begins with ``first``.
    """
    if errors:
        return _PREFIX + (errors[0] if len(errors) == 1 else f"[{', '.join(sorted(errors))}]")
    counts = Counter(reasons)
    counts[_NOT_HELPFUL] += nodes - tried
    return f"{first}{_PREFIX}{fit_message(nodes, counts)}"
