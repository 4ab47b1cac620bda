"""The number of rejected nodes by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from policies.decision import Code, Reason, Rejection
from policies.vectorized.verdicts import RejectionsByNode

ReasonCounts = Counter[Reason]


def count_reasons(rejected: Mapping[str, Rejection]) -> ReasonCounts:
    """Return the count of each reason; NO_VICTIM_NEEDED is counted without the node's name."""
    if isinstance(rejected, RejectionsByNode):
        return rejected.count_reasons()
    return Counter(
        Reason(reason.code) if reason.code is Code.NO_VICTIM_NEEDED else reason
        for rejection in rejected.values()
        for reason in rejection.reasons
    )
