"""The pods that a ReplicaSet deletes when it has too many, and why.

Source: getPodsToDelete and reportSortingDeletionAgeRatioMetric in
pkg/controller/replicaset/replica_set.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from policies.replicaset.pod_ranking import RankedPod, scale_down_order

ALL_DELETED: Final = "all-go"
"""The criterion in explanations if all pods are deleted: they are not ranked."""

_NS_PER_MS: Final = 10**6


def pods_to_delete(
    active: Sequence[RankedPod], related_per_node: Mapping[str, int], count: int, now_ns: int | None
) -> list[RankedPod]:
    """Return the ``count`` (at most all) of the ``active`` pods that are deleted first.

    If all are deleted, they keep their order. ``related_per_node`` and ``now_ns`` are those of
    scale_down_order.
    """
    if count >= len(active):
        return list(active)
    return scale_down_order(related_per_node, now_ns).sort(active)[:count]


class RankExplanation(NamedTuple):
    """Why a pod directly precedes another: the criterion that separates the two."""

    replica: RankedPod
    ahead_of: RankedPod
    criterion: str


@dataclass(frozen=True, slots=True)
class ScaleDownDecision:
    """All active pods in order of deletion, and the number that is deleted."""

    order: tuple[RankedPod, ...]
    count: int
    explanations: tuple[RankExplanation, ...]
    """For each pod but the last, why it precedes the next."""

    @property
    def victims(self) -> tuple[RankedPod, ...]:
        """The pods that are deleted."""
        return self.order[: self.count]


def decide_scale_down(
    active: Sequence[RankedPod], related_per_node: Mapping[str, int], count: int, now_ns: int | None
) -> ScaleDownDecision:
    """Choose the same pods as pods_to_delete, with explanations; ``count`` is at most all of them.

    All neighbours are compared once more, which takes longer than sorting.
    """
    if count >= len(active):
        explanations = [RankExplanation(one, other, ALL_DELETED) for one, other in pairwise(active)]
        return ScaleDownDecision(tuple(active), count, tuple(explanations))
    order = scale_down_order(related_per_node, now_ns)
    ranked = order.sort(active)
    explanations = [
        RankExplanation(one, other, order.compare(one, other).criterion)
        for one, other in pairwise(ranked)
    ]
    return ScaleDownDecision(tuple(ranked), count, tuple(explanations))


def deletion_age_ratio(
    victims: Iterable[RankedPod], active: Iterable[RankedPod], now_ns: int
) -> list[int]:
    """Return the age of each ready victim as a multiple of the age of the youngest ready pod.

    Ages are in milliseconds since the creation, and the ratio is truncated to an integer, as
    upstream. A pod without a creation time has no age. If the youngest is not yet a millisecond
    old, there are no ratios (upstream would divide by zero).
    """
    ages = [_age_ms(each, now_ns) for each in active if each.ready]
    youngest = min((age for age in ages if age is not None), default=0)
    if youngest <= 0:
        return []
    victim_ages = (_age_ms(each, now_ns) for each in victims if each.ready)
    return [age // youngest for age in victim_ages if age is not None]


def _age_ms(replica: RankedPod, now_ns: int) -> int | None:
    return None if replica.created_ns is None else (now_ns - replica.created_ns) // _NS_PER_MS
