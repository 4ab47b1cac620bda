"""A pod of a ReplicaSet, as far as the order of deletion depends on it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
"""The annotation with the cost of deleting a pod, relative to other pods of its ReplicaSet."""

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
    digits = text.removeprefix("-").lstrip("0") or "0"
    cost = -int(digits) if text.startswith("-") else int(digits)
    return cost if -(2**31) <= cost < 2**31 else None
