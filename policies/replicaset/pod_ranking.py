"""The order in which a ReplicaSet deletes pods: the criteria, two of them approximate ages.

Ages are compared by the power of two below them, in nanoseconds: the younger pod is deleted first,
but among pods with the same power the UID decides. 2⁴⁴ ns are 4 h 53 min 12.2 s::

    ready for          rank
    4 h 53 min 12 s      43    deleted before the other two
    4 h 53 min 13 s      44    of these, the one with the smaller UID is deleted first, and no
    9 h 46 min           44    other criterion is evaluated

Source: ActivePodsWithRanks in pkg/controller/controller_utils.go.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from policies.kubernetes.criteria import ApproximateCriterion, Criterion, NonTransitiveOrder
from policies.kubernetes.integers import INT32_MAX, parse_integer

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
"""The annotation with the cost of deleting a pod, relative to other pods of its ReplicaSet."""

PHASE_RANKS: Final[Mapping[str, int]] = {"Pending": 0, "Unknown": 1, "Running": 2}
"""The rank of a phase, the first to delete first; any other phase ranks as Pending does."""

MISSING_TIME: Final = -(2**63)
"""The key of a missing time, before all times: such a pod is deleted first."""

LONGEST_AGE: Final = 2**63 - 1
"""The maximum of Go's Duration, in nanoseconds; a longer age is clamped to it."""

# It begins with "-" or 1 to 9, or is "0"; then everything that Go's ParseInt accepts.
_COST = re.compile(r"0|[1-9][0-9]{0,9}|-0*[0-9]{1,10}", re.ASCII)


@dataclass(frozen=True, slots=True)
class RankedPod:
    """A pod that may be deleted; times are nanoseconds since the epoch, None for missing ones."""

    namespace: str
    name: str
    uid: str
    node: str
    """The node that it runs on; empty if it is not scheduled."""
    phase: str
    """``Pending``, ``Running``, ``Succeeded``, ``Failed``, ``Unknown``, or empty."""
    ready: bool
    ready_since_ns: int | None
    """When its condition Ready last changed."""
    deletion_cost: int
    restarts: int
    """The highest restart count of its containers."""
    sidecar_restarts: int
    """The highest restart count of its sidecars."""
    created_ns: int | None


def parse_deletion_cost(text: str | None) -> int:
    """Return the cost in the annotation; a missing or invalid one is 0.

    Source: GetDeletionCostFromPodAnnotations in pkg/apis/core/v1/helper.
    """
    cost = _parsed(text)
    return 0 if cost is None else cost


def is_deletion_cost(text: str | None) -> bool:
    """Return whether the annotation is missing or an int32 in the format that Kubernetes requires.

    It has no plus sign and no leading zero; but zeros may follow a minus sign.
    """
    return text is None or _parsed(text) is not None


def _parsed(text: str | None) -> int | None:
    if text is None or not _COST.fullmatch(text):
        return None
    return parse_integer(text, INT32_MAX)


def log2_rank(age_ns: int) -> int:
    """Return the exponent of the power of two below an age, truncated; -1 for an age of 0 or less.

    The logarithm is a float, as upstream: above six days, an age that is a few nanoseconds short of
    the next power counts as that power.
    """
    return math.floor(math.log2(min(age_ns, LONGEST_AGE))) if age_ns > 0 else -1


def scale_down_order(
    related_per_node: Mapping[str, int], now_ns: int | None
) -> NonTransitiveOrder[RankedPod]:
    """Return the order of pods, those to delete first; at the end, equal ones by UID.

    ``related_per_node`` holds the number of active related pods on each node. Without ``now_ns``
    times are compared exactly, as upstream did without the feature gate LogarithmicScaleDown.
    Upstream leaves the order of pods open that are equal in all criteria.
    """

    def age_rank(moment_ns: int | None) -> int:
        if moment_ns is None:
            return MISSING_TIME
        return -moment_ns if now_ns is None else log2_rank(now_ns - moment_ns)

    return NonTransitiveOrder(
        (
            Criterion("unscheduled", lambda replica: int(replica.node != "")),
            Criterion("phase", lambda replica: PHASE_RANKS.get(replica.phase, 0)),
            Criterion("not-ready", lambda replica: +replica.ready),
            Criterion("deletion-cost", lambda replica: replica.deletion_cost),
            Criterion("crowding", lambda replica: -related_per_node.get(replica.node, 0)),
            ApproximateCriterion(
                "ready-time",
                lambda replica: age_rank(_since(replica)),
                lambda replica: _exactly(_since(replica)),
                "uid",
            ),
            Criterion("restarts", lambda replica: -replica.restarts),
            Criterion("sidecar-restarts", lambda replica: -replica.sidecar_restarts),
            ApproximateCriterion(
                "creation-time",
                lambda replica: age_rank(replica.created_ns),
                lambda replica: _exactly(replica.created_ns),
                "uid",
            ),
        ),
        last=lambda replica: replica.uid,
        last_name="tie",
    )


def _since(replica: RankedPod) -> int | None:
    # A pod that is not ready has no ready time; only pods with equal readiness are compared by it.
    return replica.ready_since_ns if replica.ready else None


def _exactly(moment_ns: int | None) -> int:
    return MISSING_TIME if moment_ns is None else moment_ns
