"""How many nodes kube-scheduler examines, where it does not examine all of them.

Both samples start at an offset and wrap around; so an extender is sent only a part of a large
cluster.

Pure. Sources: numFeasibleNodesToFind in pkg/scheduler/schedule_one.go; GetOffsetAndNumCandidates in
plugins/defaultpreemption and DryRunPreemption in framework/preemption.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from extender.plugin_config import DefaultPreemptionArgs
from policies.decision import Candidate

LEAST_NODES: Final = 100

_LEAST_PERCENTAGE: Final = 5
_PREEMPTION_PERCENTAGE: Final = 10
_PREEMPTION_ABSOLUTE: Final = 100

T = TypeVar("T")


def feasible_nodes_to_find(nodes: int, percentage: int) -> int:
    """Return how many feasible nodes are enough; a ``percentage`` of 0 depends on their number."""
    if nodes < LEAST_NODES:
        return nodes
    share = percentage or max(50 - nodes // 125, _LEAST_PERCENTAGE)
    return max(nodes * share // 100, LEAST_NODES)


def candidates_to_find(potential: int, args: DefaultPreemptionArgs) -> int:
    """Return how many candidates are enough among potential nodes."""
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    share = _PREEMPTION_PERCENTAGE if percentage is None else percentage
    least = _PREEMPTION_ABSOLUTE if absolute is None else absolute
    return min(max(potential * share // 100, least), potential)


def rotated(items: Sequence[T], offset: int) -> list[T]:
    """Return the items from an offset on, wrapping around."""
    return [*items[offset:], *items[:offset]]


def first_feasible(
    nodes: Sequence[str], feasible: Collection[str], enough: int
) -> tuple[list[str], int]:
    """Return the first ``enough`` feasible nodes, and how many were examined."""
    found: list[str] = []
    for looked_at, name in enumerate(nodes):
        if len(found) == enough:
            return found, looked_at
        if name in feasible:
            found.append(name)
    return found, len(nodes)


def shortlist(
    nodes: Iterable[str], candidates: Mapping[str, Candidate], enough: int
) -> list[Candidate]:
    """Return the candidates that a dry run over ``nodes`` finds before it has enough.

    It stops with at least one candidate without PDB violations and ``enough`` candidates in all. Of
    those without violations and those with, ``enough`` of each are kept.
    """
    harmless: list[Candidate] = []
    breaking: list[Candidate] = []
    for name in nodes:
        if harmless and len(harmless) + len(breaking) >= enough:
            break
        candidate = candidates.get(name)
        if candidate is None:
            continue
        kept = breaking if candidate.victims.violations else harmless
        if len(kept) < enough:
            kept.append(candidate)
    return [*harmless, *breaking]
