"""Deletion costs: the table of the module's docstring, and the order of excess pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from policies.workloadspread.deletion_costs import (
    DELETION_ORDER,
    Cost,
    SubsetRank,
    deletion_costs,
    new_pod_cost,
)
from policies.workloadspread.model import FAKE_SUBSET, SpreadPod
from policies.workloadspread.object_references import WorkloadReference
from policies.workloadspread.quirks import FIXED, UPSTREAM, Quirks
from tests.builders.workloadspread import (
    CLONE_SET,
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    STATEFUL_SET,
    at,
    member,
    spread,
    subset,
)

THREE = (subset("a", 10), subset("b", 10), subset("c"))


def several(name: str, count: int) -> list[SpreadPod]:
    return [member(f"{name}-{index:02}", name) for index in range(count)]


def costs(
    pods: Mapping[str, Sequence[SpreadPod]],
    *,
    version: str = "v",
    newest: str = "v",
    subsets: Any = THREE,
    target: WorkloadReference = CLONE_SET,
    replicas: int = 30,
    quirks: Quirks = FIXED,
) -> dict[str, Cost]:
    about = spread(*subsets, target=target)
    return deletion_costs(about, {version: pods}, newest, replicas, quirks)


def values(costs: Mapping[str, Cost]) -> list[int]:
    return [cost.value for _, cost in sorted(costs.items())]


def test_within_their_limits_the_last_subset_s_pods_are_cheapest() -> None:
    found = costs({name: several(name, 10) for name in "abc"})
    assert values(found) == [300] * 10 + [200] * 10 + [100] * 10
    assert {cost.subset_rank for cost in found.values()} == {SubsetRank.WITHIN}


def test_excess_pods_are_cheaper_than_any_other() -> None:
    found = costs({name: several(name, 20) for name in "abc"})
    both = [-100] * 10 + [300] * 10 + [-200] * 10 + [200] * 10
    assert values(found) == both + [100] * 20
    assert found["a-00"] == Cost(-100, SubsetRank.EXCESS, "name")


def test_pods_of_no_subset_are_the_cheapest() -> None:
    found = costs({FAKE_SUBSET: [member("x"), member("y", phase="Failed")]})
    assert found == {"x": Cost(-400, SubsetRank.OUTSIDE)}


def test_an_old_version_is_emptied_from_its_first_subset_on() -> None:
    found = costs({name: several(name, 11) for name in "abc"}, newest="another")
    assert values(found) == [-300, *[100] * 10, -200, *[200] * 10, *[300] * 11]


@pytest.mark.parametrize(
    ("target", "applied"),
    [(CLONE_SET, 1), (DEPLOYMENT, 1), (REPLICA_SET, 1), (STATEFUL_SET, 0), (JOB, 0)],
)
def test_some_kinds_use_deletion_costs(target: WorkloadReference, applied: int) -> None:
    assert len(costs({"a": several("a", 1)}, target=target)) == applied


def test_a_new_pod_has_the_cost_of_the_newest_version() -> None:
    around = spread(*THREE, target=REPLICA_SET)
    new_costs = {name: new_pod_cost(around, name, FIXED) for name in "abc"}
    seen = costs({name: several(name, 1) for name in "abc"}, target=REPLICA_SET)
    assert new_costs == {"a": 300, "b": 200, "c": 100}
    assert new_costs == {name: seen[f"{name}-00"].value for name in "abc"}


@pytest.mark.parametrize(
    ("target", "name", "quirks"),
    [(STATEFUL_SET, "a", FIXED), (REPLICA_SET, "gone", FIXED), (REPLICA_SET, "a", UPSTREAM)],
)
def test_some_new_pods_have_no_cost(target: WorkloadReference, name: str, quirks: Quirks) -> None:
    assert new_pod_cost(spread(*THREE, target=target), name, quirks) is None


def test_percentages_are_of_all_replicas() -> None:
    found = costs({"a": several("a", 4)}, subsets=[subset("a", "30%")], replicas=10)
    assert values(found) == [-100, 100, 100, 100]


def test_with_a_limit_of_zero_all_pods_are_in_excess() -> None:
    found = costs({"a": several("a", 2)}, subsets=[subset("a", 0)])
    assert found == dict.fromkeys(("a-00", "a-01"), Cost(-100, SubsetRank.EXCESS))


def test_an_invalid_limit_gives_no_costs() -> None:
    pods = {"a": several("a", 1), "b": several("b", 1)}
    assert values(costs(pods, subsets=[subset("a", "x"), subset("b")])) == [100]
    assert values(costs(pods, subsets=[subset("a", "0"), subset("b")], quirks=UPSTREAM)) == [
        -100,
        100,
    ]


@pytest.mark.parametrize(
    ("first", "second", "criterion"),
    [
        ({"node": ""}, {}, "unscheduled"),
        ({"node": "", "ready": True}, {"phase": "Pending"}, "unscheduled"),
        ({"phase": "Pending"}, {"phase": "Unknown"}, "phase"),
        ({"phase": ""}, {"phase": "Running"}, "phase"),
        ({"phase": "Unknown"}, {"phase": "Running"}, "phase"),
        ({}, {"ready": True, "ready_since": at(0)}, "not-ready"),
        (
            {"ready": True, "ready_since": at(0)},
            {"ready": True, "ready_since": at(-9)},
            "ready-time",
        ),
        ({"ready": True}, {"ready": True, "ready_since": at(0)}, "ready-time"),
        ({"ready_since": at(-9), "restarts": 1}, {"ready_since": at(0)}, "restarts"),
        ({"restarts": 2}, {"restarts": 1, "sidecar_restarts": 9}, "restarts"),
        ({"sidecar_restarts": 1}, {"created_ns": None}, "sidecar-restarts"),
        ({"created_ns": at(0)}, {"created_ns": at(-1)}, "creation-time"),
        ({"created_ns": None}, {"created_ns": at(0)}, "creation-time"),
        ({"name": "a"}, {"name": "b"}, "name"),
    ],
)
def test_excess_pods_come_first(
    first: dict[str, Any], second: dict[str, Any], criterion: str
) -> None:
    usual: dict[str, Any] = {"created_ns": at(-60)}
    one = member(first.pop("name", "z"), **{**usual, **first})
    other = member(second.pop("name", "a"), **{**usual, **second})
    assert DELETION_ORDER.sort([other, one]) == DELETION_ORDER.sort([one, other]) == [one, other]
    assert DELETION_ORDER.deciding_criterion(one, other) == criterion
