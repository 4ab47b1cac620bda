"""The order in which a ReplicaSet deletes pods: its criteria, and deletion costs."""

from __future__ import annotations

from typing import Any

import pytest

from policies.kubernetes.criteria import Comparison
from policies.replicaset import (
    RankedPod,
    is_deletion_cost,
    log2_rank,
    parse_deletion_cost,
    scale_down_order,
)
from tests.builders import SECOND
from tests.builders.replicas import NOW_NS, VECTORS, replica

NOTHING_NEAR: dict[str, int] = {}
MINUTE, HOUR, DAY = 60, 3600, 86_400

# Each row's first replica goes before its second; as the first has the larger name and so the
# larger UID, it cannot do so by UID.
SEPARATED = [
    ("unscheduled", replica("b", node=""), replica("a")),
    ("phase", replica("b", phase="Pending"), replica("a", phase="Unknown")),
    ("phase", replica("b", phase="Unknown"), replica("a", phase="Running")),
    ("phase", replica("b", phase=""), replica("a", phase="Unknown")),
    ("phase", replica("b", phase="Succeeded"), replica("a", phase="Running")),
    ("not-ready", replica("b", is_ready=False), replica("a")),
    ("deletion-cost", replica("b", cost=-1), replica("a")),
    ("deletion-cost", replica("b", cost=-(2**31)), replica("a", cost=2**31 - 1)),
    ("crowding", replica("b", node="full"), replica("a", node="empty")),
    ("ready-time", replica("b", ready=None), replica("a", ready=0)),
    ("ready-time", replica("b", ready=MINUTE), replica("a", ready=HOUR)),
    ("ready-time", replica("b", ready=-MINUTE), replica("a", ready=1)),
    ("restarts", replica("b", restarts=2), replica("a", restarts=1)),
    (
        "restarts",
        replica("b", restarts=2, is_ready=False),
        replica("a", restarts=1, is_ready=False, ready=MINUTE),
    ),
    ("sidecar-restarts", replica("b", sidecar_restarts=2), replica("a", sidecar_restarts=1)),
    ("creation-time", replica("b", created=None), replica("a", created=0)),
    ("creation-time", replica("b", created=MINUTE), replica("a", created=HOUR)),
    (
        "creation-time",
        replica("b", created=MINUTE, is_ready=False, ready=DAY),
        replica("a", created=HOUR, is_ready=False, ready=MINUTE),
    ),
]
WEIGHTS: list[dict[str, Any]] = [
    {"node": ""},
    {"phase": "Pending"},
    {"is_ready": False},
    {"cost": -1},
    {"node": "full"},
    {"ready": MINUTE},
    {"restarts": 1},
    {"sidecar_restarts": 1},
    {"created": MINUTE},
]
"""What is preferred by each criterion, from the weightiest to the least."""


def compared(one: RankedPod, other: RankedPod, now_ns: int | None = NOW_NS) -> Comparison:
    return scale_down_order({"full": 2, "empty": 1}, now_ns).compare(one, other)


@pytest.mark.parametrize(("criterion", "first", "second"), SEPARATED)
def test_each_criterion_separates(criterion: str, first: RankedPod, second: RankedPod) -> None:
    assert compared(first, second) == (-1, criterion)
    assert compared(second, first) == (1, criterion)


@pytest.mark.parametrize("place", range(len(WEIGHTS) - 1))
def test_an_earlier_criterion_wins_against_all_that_follow(place: int) -> None:
    lighter: dict[str, Any] = {}
    for each in WEIGHTS[place + 1 :]:
        lighter |= {field: value for field, value in each.items() if field not in lighter}
    first: dict[str, Any] = {"node": "empty", **WEIGHTS[place]}
    second: dict[str, Any] = {"node": "empty", **lighter}
    assert compared(replica("b", **first), replica("a", **second)).sign == -1


def test_ready_times_in_the_same_power_of_two_are_equal() -> None:
    young = replica("b", ready=5 * HOUR, restarts=9, created=None)
    old = replica("a", ready=9 * HOUR)
    assert compared(old, young) == (-1, "uid")
    assert compared(young, old) == (1, "uid")


def test_creation_times_in_the_same_power_of_two_are_equal() -> None:
    assert compared(replica("a", created=9 * HOUR), replica("b", created=5 * HOUR)) == (-1, "uid")


def test_restarts_decide_between_equal_ready_times() -> None:
    assert compared(replica("b", restarts=1), replica("a")) == (-1, "restarts")


def test_two_missing_times_are_equal() -> None:
    first, second = replica("b", ready=None, restarts=1), replica("a", ready=None)
    assert compared(first, second) == (-1, "restarts")
    assert compared(replica("a", created=None), replica("b", created=None)) == (-1, "tie")


def test_pods_that_are_equal_in_every_criterion_tie() -> None:
    assert compared(replica("a"), replica("b")) == (-1, "tie")
    assert compared(replica("a"), replica("a")) == (0, "tie")


def test_without_now_times_are_compared_exactly() -> None:
    young, old = replica("b", ready=5 * HOUR), replica("a", ready=9 * HOUR)
    assert compared(young, old, None) == (-1, "ready-time")
    young, old = replica("b", created=5 * HOUR), replica("a", created=5 * HOUR + 1e-9)
    assert compared(young, old, None) == (-1, "creation-time")
    assert compared(replica("b", ready=None), replica("a", ready=-DAY), None) == (-1, "ready-time")


@pytest.mark.parametrize("case", VECTORS["log_rank"], ids=lambda case: str(case["age_ns"]))
def test_upstream_s_ranks_of_ages(case: dict[str, Any]) -> None:
    assert log2_rank(case["age_ns"]) == case["expect_rank"]


@pytest.mark.parametrize(
    ("age_ns", "rank"),
    [
        (-(2**64), -1),
        (0, -1),
        (1, 0),
        (2, 1),
        (3, 1),
        (SECOND, 29),
        (2**44 - 1, 43),
        (2**44, 44),
        (2**48 - 1, 47),
        (2**63 - 1, 63),
        (2**65, 63),
    ],
)
def test_the_rank_of_an_age_is_the_power_of_two_below_it(age_ns: int, rank: int) -> None:
    assert log2_rank(age_ns) == rank


def test_logarithms_have_the_precision_of_a_float() -> None:
    """Compare with Go 1.27's int64(math.Log2(float64(age))) on amd64."""
    assert [log2_rank(2**49 - 2), log2_rank(2**49 - 1)] == [48, 49]
    assert [log2_rank(2**53 - 23), log2_rank(2**53 - 22)] == [52, 53]


# Deletion costs


@pytest.mark.parametrize("case", VECTORS["deletion_cost"], ids=lambda case: repr(case["value"]))
def test_upstream_s_costs(case: dict[str, Any]) -> None:
    assert parse_deletion_cost(case["value"]) == case["expect"]
    assert is_deletion_cost(case["value"]) == case["valid"]


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("0", 0),
        ("-0", 0),
        ("-08", -8),
        ("-00000000000000000012", -12),
        ("-" + "0" * 9_000 + "7", -7),
        ("-2147483648", -(2**31)),
    ],
)
def test_a_deletion_cost_is_what_go_parses_as_an_int32(text: str, cost: int) -> None:
    assert (parse_deletion_cost(text), is_deletion_cost(text)) == (cost, True)


@pytest.mark.parametrize(
    "text",
    ["00", "-2147483649", "9" * 9_000, "--5", "-+5", "1.5", "1e3", "10 ", "10\n", "٣", "1٣", "abc"],
)
def test_any_other_cost_is_zero(text: str) -> None:
    assert (parse_deletion_cost(text), is_deletion_cost(text)) == (0, False)
