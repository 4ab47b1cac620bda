"""What the pod's FailedScheduling event says: why no node fits, then what preemption found.

Both engines count reasons and leave the words to this module. Sources: FitError.Error in
pkg/scheduler/framework/types.go, handleSchedulingFailure in pkg/scheduler/schedule_one.go, and
pkg/scheduler/framework/preemption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from policies.decision import (
    Candidate,
    Code,
    FilterDecision,
    Reason,
    Rejection,
    fit_message,
)
from policies.filtering import deallocation
from policies.model import Snapshot
from policies.upstream import Release

NO_NODES = "no nodes available to schedule pods"
"""kube-scheduler gives up before it filters (ErrNoNodesAvailable in schedule_one.go)."""
_PREFIX = "preemption: "
_NOT_HELPFUL = Reason(Code.NOT_HELPFUL)


def unfit(
    nodes: int, conflict: Rejection | None, reasons: Mapping[Reason, int], release: Release
) -> str:
    """Return the event's first sentence: how many of ``nodes`` nodes were refused for which reason.

    A ``conflict``, which no node can heal, stands alone.
    """
    if conflict is not None:
        return f"0/{nodes} nodes are available: {conflict}."
    told = {
        reason: count
        for reason, count in reasons.items()
        if reason.code is not Code.NOT_EXAMINED or release.names_unexamined_nodes
    }
    return fit_message(nodes, told)


def before_preemption(filtering: FilterDecision, snapshot: Snapshot, release: Release) -> str:
    """Return what the second sentence begins with if preemption is of no use.

    The PostFilter of device claims comes first; from 1.34 to 1.36 it says what it did, too.
    """
    return f"{deallocation(filtering, snapshot)}, " if release.mentions_claims else ""


def ineligible(reason: str, first: str) -> str:
    """Return the second sentence for a pod that may not preempt; it begins with ``first``."""
    return f"{first}{_PREFIX}{reason}"


def placed(best: Candidate, release: Release) -> str:
    """Return the second sentence for a pod that a place was found for; most releases have none."""
    if not release.announces_placement:
        return ""
    return (
        f"{_PREFIX}found a potential placement for pod on node {best.node}, "
        f"preempting {len(best.victims.pods)} victims"
    )


def helpless(
    nodes: int, tried: int, reasons: Mapping[Reason, int], errors: Sequence[str], first: str
) -> str:
    """Return the second sentence where no candidate was found among ``nodes`` nodes.

    ``reasons`` counts why the ``tried`` ones failed; the others were beyond help. ``errors`` are
    nodes where, against expectation, nobody had to go: these are told and nothing else. Otherwise
    the sentence begins with ``first``.
    """
    if errors:
        told = sorted(errors)
        return _PREFIX + (told[0] if len(told) == 1 else f"[{', '.join(told)}]")
    counts = Counter(reasons)
    counts[_NOT_HELPFUL] += nodes - tried
    return f"{first}{_PREFIX}{fit_message(nodes, counts)}"
