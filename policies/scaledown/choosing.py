"""Which replicas a ReplicaSet deletes when it has too many, and why.

Source: getPodsToDelete and reportSortingDeletionAgeRatioMetric in
pkg/controller/replicaset/replica_set.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from policies.scaledown.ranking import scale_down_order
from policies.scaledown.replica import Replica

ALL_GO: Final = "all-go"
"""What explanations say where all replicas go: they are not ranked."""

_MANY: Final = 500
"""From so many replicas on, columns save more than it costs to load numpy for them."""

_NS_PER_MS: Final = 10**6


def choose_victims(
    active: Sequence[Replica], crowding: Mapping[str, int], count: int, now_ns: int | None
) -> list[Replica]:
    """Return the ``count`` (at most all) of the ``active`` replicas that are deleted first.

    If all go, they come as they were given. ``crowding`` and ``now_ns`` are what scale_down_order
    takes.
    """
    if count >= len(active):
        return list(active)
    if len(active) < _MANY:
        return scale_down_order(crowding, now_ns).sort(active)[:count]
    from policies.scaledown.columns import sort_for_deletion

    return sort_for_deletion(active, crowding, now_ns)[:count]


class Precedence(NamedTuple):
    """Why a replica stands directly before another: the criterion that separates the two."""

    replica: Replica
    ahead_of: Replica
    criterion: str


@dataclass(frozen=True, slots=True)
class ScaleDownDecision:
    """All active replicas, those first that are deleted first, and how many of them go."""

    order: tuple[Replica, ...]
    count: int
    because: tuple[Precedence, ...]
    """For each but the last, why it stands before the next."""

    @property
    def victims(self) -> tuple[Replica, ...]:
        """The replicas that are deleted."""
        return self.order[: self.count]


def decide_scale_down(
    active: Sequence[Replica], crowding: Mapping[str, int], count: int, now_ns: int | None
) -> ScaleDownDecision:
    """Choose as choose_victims does, and say why; ``count`` is at most all of them.

    This is the plain way, and every neighbour is compared once more: for 50,000 replicas, seconds.
    """
    if count >= len(active):
        because = [Precedence(one, other, ALL_GO) for one, other in pairwise(active)]
        return ScaleDownDecision(tuple(active), count, tuple(because))
    order = scale_down_order(crowding, now_ns)
    ranked = order.sort(active)
    because = [
        Precedence(one, other, order.compare(one, other).criterion)
        for one, other in pairwise(ranked)
    ]
    return ScaleDownDecision(tuple(ranked), count, tuple(because))


def deletion_age_ratio(
    victims: Iterable[Replica], active: Iterable[Replica], now_ns: int
) -> list[int]:
    """Return for each victim that is ready how many times as old it is as the youngest ready one.

    Ages are of milliseconds since the creation, and the ratio is cut to an integer, as upstream.
    A pod without a creation time has no age. Where the youngest is not yet a millisecond old, there
    are no ratios (upstream would divide by zero).
    """
    ages = [_age_ms(each, now_ns) for each in active if each.ready]
    youngest = min((age for age in ages if age is not None), default=0)
    if youngest <= 0:
        return []
    old = (_age_ms(each, now_ns) for each in victims if each.ready)
    return [age // youngest for age in old if age is not None]


def _age_ms(replica: Replica, now_ns: int) -> int | None:
    return None if replica.created_ns is None else (now_ns - replica.created_ns) // _NS_PER_MS
