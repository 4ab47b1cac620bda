"""How many nodes kube-scheduler looks at, where it does not look at all of them.

Both samples begin at one node and go round; so what an extender is offered in a large cluster is a
part of it.

Pure. Sources: numFeasibleNodesToFind in pkg/scheduler/schedule_one.go; GetOffsetAndNumCandidates in
plugins/defaultpreemption and DryRunPreemption in framework/preemption.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from extender.plugin_config import PreemptionArgs
from policies.decision import Candidate

LEAST_NODES: Final = 100

_LEAST_PERCENTAGE: Final = 5
_PREEMPTION_PERCENTAGE: Final = 10
_PREEMPTION_ABSOLUTE: Final = 100

T = TypeVar("T")


def nodes_to_find(nodes: int, percentage: int) -> int:
    """Return how many nodes that fit are enough; a ``percentage`` of 0 goes by their number."""
    if nodes < LEAST_NODES:
        return nodes
    share = percentage or max(50 - nodes // 125, _LEAST_PERCENTAGE)
    return max(nodes * share // 100, LEAST_NODES)


def candidates_to_find(potential: int, args: PreemptionArgs) -> int:
    """Return how many candidates are enough among potential nodes."""
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    share = _PREEMPTION_PERCENTAGE if percentage is None else percentage
    least = _PREEMPTION_ABSOLUTE if absolute is None else absolute
    return min(max(potential * share // 100, least), potential)


def from_offset(items: Sequence[T], offset: int) -> list[T]:
    """List items from a place on, going round."""
    return [*items[offset:], *items[:offset]]


def until_enough(
    nodes: Sequence[str], fitting: Collection[str], enough: int
) -> tuple[list[str], int]:
    """Return the first nodes that fit, ``enough`` of them at most, and how many were looked at."""
    found: list[str] = []
    for looked_at, name in enumerate(nodes):
        if len(found) == enough:
            return found, looked_at
        if name in fitting:
            found.append(name)
    return found, len(nodes)


def shortlist(
    nodes: Iterable[str], candidates: Mapping[str, Candidate], enough: int
) -> list[Candidate]:
    """Return the candidates that a dry run over ``nodes`` finds before it has enough.

    It has, with a candidate that breaks no budget and ``enough`` in all. Of those that break none
    and those that do, ``enough`` of each are kept.
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
