"""Scale-downs of a real controller (1.30.14).

Upstream's sort is not stable and starts from the order of a Go map. So which one of two pods goes
that are equal in all criteria was chance, and here it is the smaller UID; and where three pods go
round in a circle, upstream has no order that could be demanded. The recordings have no such circle.
One of them, sd-77-53, has equal pods of which some went and some stayed: its names are asserted as
well, since UIDs happen to give the same, but upstream guarantees only what the second test asserts:
that no pod stayed that comes before a deleted one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import combinations, product
from typing import Any

import pytest

from extender.kube.decoders.pods import epoch_ns
from policies.kubernetes.criteria import NonTransitiveOrder
from policies.replicaset import (
    RankedPod,
    claimed_pods,
    decide_scale_down,
    indirectly_related_pods,
    pods_to_delete,
    related_pods_per_node,
    scale_down_order,
)
from tests.builders.replicas import RECORDED, members, of_kind, replica_sets


@dataclass(frozen=True)
class Recording:
    """One scale-down, decoded."""

    data: Mapping[str, Any]

    @cached_property
    def active(self) -> list[RankedPod]:
        return claimed_pods(self._one, self._pods)

    @cached_property
    def crowding(self) -> Mapping[str, int]:
        return related_pods_per_node(indirectly_related_pods(self._one, self._sets, self._pods))

    @cached_property
    def now_ns(self) -> int:
        return epoch_ns(datetime.fromisoformat(self.data["now"]))

    @cached_property
    def order(self) -> NonTransitiveOrder[RankedPod]:
        return scale_down_order(self.crowding, self.now_ns)

    @cached_property
    def went_and_stayed(self) -> tuple[list[RankedPod], list[RankedPod]]:
        went = [each for each in self.active if each.name in self.data["deleted"]]
        return went, [each for each in self.active if each not in went]

    @cached_property
    def _pods(self) -> Any:
        return members(of_kind(self.data["cluster"]["items"], "Pod"))

    @cached_property
    def _sets(self) -> Any:
        return replica_sets(of_kind(self.data["cluster"]["items"], "ReplicaSet"))

    @property
    def _one(self) -> Any:
        return next(each for each in self._sets if each.key == self.data["replicaset"])


RECORDINGS = {name: Recording(data) for name, data in RECORDED.items()}


@pytest.mark.parametrize("recording", RECORDINGS.values(), ids=RECORDINGS)
def test_the_same_pods_are_deleted(recording: Recording) -> None:
    count = recording.data["delete"]
    victims = pods_to_delete(recording.active, recording.crowding, count, recording.now_ns)
    assert sorted(each.name for each in victims) == recording.data["deleted"]


@pytest.mark.parametrize("recording", RECORDINGS.values(), ids=RECORDINGS)
def test_no_remaining_pod_ranks_before_a_deleted_one(recording: Recording) -> None:
    for went, stayed in product(*recording.went_and_stayed):
        sign, criterion = recording.order.compare(went, stayed)
        assert sign == -1 or criterion == "tie"


def test_one_recording_holds_ties_and_none_holds_a_cycle() -> None:
    ties = {
        name
        for name, each in RECORDINGS.items()
        if any(
            each.order.compare(*two).criterion == "tie" for two in product(*each.went_and_stayed)
        )
    }
    assert ties == {"sd-77-53"}
    for each in RECORDINGS.values():
        compare = each.order.compare
        assert not any(
            compare(a, b).sign == compare(b, c).sign == compare(c, a).sign
            for a, b, c in combinations(each.active, 3)
        )


def test_the_recordings_cover_different_decisions() -> None:
    """Assert that most criteria have decided between a deleted and a remaining pod."""
    decisive = set()
    for each in RECORDINGS.values():
        count = each.data["delete"]
        decision = decide_scale_down(each.active, each.crowding, count, each.now_ns)
        decisive |= {why for one, other, why in decision.explanations[count - 1 : count]}
    assert decisive >= {"deletion-cost", "crowding", "ready-time", "uid", "restarts"}
