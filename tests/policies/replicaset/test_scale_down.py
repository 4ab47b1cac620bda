"""The choice of pods to delete, its explanation, and the ratio of ages for the metric."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.replicaset import (
    ALL_DELETED,
    RankedPod,
    decide_scale_down,
    deletion_age_ratio,
    pods_to_delete,
)
from tests.builders.replicas import NOW_NS, names, replica

HOUR = 3600
THREE = [replica("old", ready=9 * HOUR), replica("new", ready=60), replica("lost", node="")]


@pytest.mark.parametrize(
    ("count", "gone"), [(0, []), (1, ["lost"]), (2, ["lost", "new"]), (3, ["old", "new", "lost"])]
)
def test_all_are_deleted_in_input_order_and_fewer_by_rank(count: int, gone: list[str]) -> None:
    assert names(pods_to_delete(THREE, {}, count, NOW_NS)) == gone
    assert names(decide_scale_down(THREE, {}, count, NOW_NS).victims) == gone


def test_the_reasons_follow_the_order() -> None:
    decision = decide_scale_down(THREE, {}, 1, NOW_NS)
    assert names(decision.order) == ["lost", "new", "old"]
    assert [(one.name, other.name, why) for one, other, why in decision.explanations] == [
        ("lost", "new", "unscheduled"),
        ("new", "old", "ready-time"),
    ]


def test_deleting_all_pods_ranks_none() -> None:
    decision = decide_scale_down(THREE, {}, 3, NOW_NS)
    assert names(decision.order) == ["old", "new", "lost"]
    assert [each.criterion for each in decision.explanations] == [ALL_DELETED, ALL_DELETED]


def test_pods_on_crowded_nodes_are_deleted_first() -> None:
    pods = [replica("a", node="empty"), replica("b", node="full")]
    assert names(pods_to_delete(pods, {"full": 2, "empty": 1}, 1, NOW_NS)) == ["b"]


@given(st.permutations([replica(name, ready=HOUR * len(name)) for name in ("a", "bb", "c", "dd")]))
def test_the_choice_does_not_depend_on_the_order_of_the_input(pods: list[RankedPod]) -> None:
    decision = decide_scale_down(pods, {}, 2, NOW_NS)
    assert names(decision.order) == ["a", "c", "bb", "dd"]
    assert list(decision.victims) == pods_to_delete(pods, {}, 2, NOW_NS)
    assert [(each.replica, each.ahead_of) for each in decision.explanations] == list(
        pairwise(decision.order)
    )


@pytest.mark.parametrize(
    ("ages", "victim_ages", "ratios"),
    [
        ([10, 25], [10, 25], [1, 2]),
        ([10], [9.999, 10, 19.999, 20, 30.5], [0, 1, 1, 2, 3]),
        ([10], [], []),
        ([], [10], []),
        ([0, 10], [10], []),
        ([-5, 10], [10], []),
        ([0.0009, 10], [10], []),
        ([0.001], [10], [10_000]),
        ([None, 10], [None, 20], [2]),
    ],
)
def test_the_ratio_is_to_the_age_of_the_youngest(
    ages: list[float | None], victim_ages: list[float | None], ratios: list[int]
) -> None:
    active = [replica(created=age) for age in ages]
    victims = [replica(created=age) for age in victim_ages]
    assert deletion_age_ratio(victims, active, NOW_NS) == ratios


def test_only_ready_pods_have_a_ratio_and_are_compared_with() -> None:
    unready = replica(created=1, is_ready=False)
    ready = replica(created=10)
    assert deletion_age_ratio([unready, ready], [unready, ready], NOW_NS) == [1]
