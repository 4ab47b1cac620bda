"""Upstream's test tables of scale-downs, and cases that were derived from its source."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from extender.kube.decoders.pods import epoch_ns
from policies.kubernetes.criteria import NonTransitiveOrder
from policies.replicaset import RankedPod, pods_to_delete, related_pods_per_node, scale_down_order
from tests.builders.replicas import VECTORS, members, names

CASES = {case["name"]: case for case in VECTORS["cases"]}
PAIRS = {name: case for name, case in CASES.items() if case.get("comparator_only")}
SELECTIONS = {name: case for name, case in CASES.items() if name not in PAIRS}


def now_of(case: dict[str, Any]) -> int | None:
    return None if case["now"] is None else epoch_ns(datetime.fromisoformat(case["now"]))


def replicas_of(case: dict[str, Any]) -> list[RankedPod]:
    return [member.replica for member in members(case["pods"])]


def order_of(case: dict[str, Any]) -> NonTransitiveOrder[RankedPod]:
    return scale_down_order(related_pods_per_node(members(case["related"])), now_of(case))


@pytest.mark.parametrize("name", SELECTIONS)
def test_the_pods_that_are_deleted(name: str) -> None:
    case = SELECTIONS[name]
    related = members(case["related"])
    victims = pods_to_delete(
        replicas_of(case), related_pods_per_node(related), case["delete"], now_of(case)
    )
    expected = case["expect_deleted"]
    assert len(victims) == case["delete"]
    if expected is not None:
        ordered = case["expect_deleted_ordered"]
        assert names(victims) == expected if ordered else set(names(victims)) == set(expected)


@pytest.mark.parametrize("name", [n for n, case in SELECTIONS.items() if case["expect_order"]])
def test_the_whole_order(name: str) -> None:
    case = SELECTIONS[name]
    assert names(order_of(case).sort(replicas_of(case))) == case["expect_order"]


@pytest.mark.parametrize(
    "name", [n for n, case in SELECTIONS.items() if case["related"] and "ranks" in case]
)
def test_pods_are_ranked_by_related_pods_on_their_nodes(name: str) -> None:
    case = SELECTIONS[name]
    counts = related_pods_per_node(members(case["related"]))
    assert [counts.get(each.node, 0) for each in replicas_of(case)] == case["ranks"]


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str) -> None:
    """Compare pairs: no pod is before itself, and in a cycle of three each is before the next."""
    case = PAIRS[name]
    replicas, order = replicas_of(case), order_of(case)
    if case.get("expect_equal"):
        assert order.compare(*replicas) == (0, "tie")
    by_name = {each.name: each for each in replicas}
    for first, second in case.get("expect_less_pairs", ()):
        assert order.compare(by_name[first], by_name[second]).sign == -1
