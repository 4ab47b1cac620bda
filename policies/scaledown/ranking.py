"""The order in which a ReplicaSet gives up pods: the criteria, and two ages that are told roughly.

Ages are compared by the power of two below them, in nanoseconds: the younger one goes first, but of
two that are about as old either may, as their UIDs have it. 2⁴⁴ ns are 4 h 53 min 12.2 s::

    ready for          rank
    4 h 53 min 12 s      43    goes before the other two
    4 h 53 min 13 s      44    of these the one with the smaller UID goes first, and no other
    9 h 46 min           44    criterion is asked

Source: ActivePodsWithRanks in pkg/controller/controller_utils.go.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from policies.order import Coarse, Criterion, StoppingOrder
from policies.scaledown.replica import Replica

PHASES: Final[Mapping[str, int]] = {"Pending": 0, "Unknown": 1, "Running": 2}
"""What goes first by its phase; any other phase counts as Pending does."""

MISSING: Final = -(2**63)
"""The key of a time that is missing: such a pod goes first. It comes before all times."""

LONGEST_AGE: Final = 2**63 - 1
"""What Go's Duration holds, in nanoseconds; a longer age counts as this one."""


def log2_rank(age_ns: int) -> int:
    """Return the power of two below an age, as the fraction is cut off; -1 for no age at all.

    The logarithm is a float, as upstream: above six days, an age that lacks a few nanoseconds to
    the next power counts as that power.
    """
    return int(math.log2(min(age_ns, LONGEST_AGE))) if age_ns > 0 else -1


def scale_down_order(crowding: Mapping[str, int], now_ns: int | None) -> StoppingOrder[Replica]:
    """Order replicas, those to delete first; at the end, equal ones by UID.

    ``crowding`` says how many active related pods there are on each node. Without ``now_ns`` times
    are compared exactly, as upstream did without the feature gate LogarithmicScaleDown. Upstream
    leaves replicas that are equal in everything in any order.
    """

    def age_rank(moment_ns: int | None) -> int:
        if moment_ns is None:
            return MISSING
        return -moment_ns if now_ns is None else log2_rank(now_ns - moment_ns)

    return StoppingOrder(
        (
            Criterion("unscheduled", lambda replica: int(replica.node != "")),
            Criterion("phase", lambda replica: PHASES.get(replica.phase, 0)),
            Criterion("not-ready", lambda replica: int(replica.ready)),
            Criterion("deletion-cost", lambda replica: replica.deletion_cost),
            Criterion("crowding", lambda replica: -crowding.get(replica.node, 0)),
            Coarse(
                "ready-time",
                lambda replica: age_rank(_since(replica)),
                lambda replica: _exactly(_since(replica)),
                "uid",
            ),
            Criterion("restarts", lambda replica: -replica.restarts),
            Criterion("sidecar-restarts", lambda replica: -replica.sidecar_restarts),
            Coarse(
                "creation-time",
                lambda replica: age_rank(replica.created_ns),
                lambda replica: _exactly(replica.created_ns),
                "uid",
            ),
        ),
        last=lambda replica: replica.uid,
        last_name="tie",
    )


def _since(replica: Replica) -> int | None:
    # What is not ready has not been so since any time; only what is alike in this gets here.
    return replica.ready_since_ns if replica.ready else None


def _exactly(moment_ns: int | None) -> int:
    return MISSING if moment_ns is None else moment_ns
