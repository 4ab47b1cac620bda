"""maxReplicas as a number: absolute, as a share, and texts that are neither."""

from __future__ import annotations

import pytest

from policies.workloadspread.model import MaxReplicas
from policies.workloadspread.quirks import FIXED, UPSTREAM
from policies.workloadspread.subset_counts import (
    MaxReplicasError,
    limit_for_costs,
    limit_for_counting,
    percentage_value,
    scaled_value,
)


@pytest.mark.parametrize(
    ("limit", "replicas", "number"),
    [
        (None, 10, None),
        (0, 10, 0),
        (4, 10, 4),
        ("0%", 10, 0),
        ("33%", 10, 4),
        ("30%", 10, 3),
        ("1%", 1000, 10),
        ("1%", 1, 1),
        ("100%", 7, 7),
        ("150%", 10, 15),
        ("50%", 0, 0),
        ("50%", -1, 0),
        ("+5%", 100, 5),
    ],
)
def test_limits_that_make_sense(limit: MaxReplicas, replicas: int, number: int | None) -> None:
    for quirks in (FIXED, UPSTREAM):
        assert limit_for_counting(limit, replicas, quirks) == number
        assert limit_for_costs(limit, replicas, quirks) == number


@pytest.mark.parametrize("limit", [-1, "-1%", "", "%", "x", "5.5%", "5 %", "1_0%", "0x1%"])
def test_limits_that_make_none(limit: MaxReplicas) -> None:
    for quirks in (FIXED, UPSTREAM):
        with pytest.raises(MaxReplicasError):
            limit_for_counting(limit, 100, quirks)
        with pytest.raises(MaxReplicasError):
            limit_for_costs(limit, 100, quirks)


def test_a_percentage_of_unknown_replicas_is_negative() -> None:
    with pytest.raises(MaxReplicasError, match="'100%' is negative"):
        limit_for_counting("100%", -1, FIXED)


def test_a_numeric_text_is_that_number() -> None:
    assert limit_for_counting("5", 10, FIXED) == limit_for_costs("5", 10, FIXED) == 5


def test_upstream_reads_a_numeric_text_in_two_ways() -> None:
    assert limit_for_costs("5", 100, UPSTREAM) == 5
    assert limit_for_costs("5", 10, UPSTREAM) == 1
    assert limit_for_costs("5%%", 100, UPSTREAM) == 5
    with pytest.raises(MaxReplicasError, match="'5' is not a percentage such as 30%"):
        limit_for_counting("5", 100, UPSTREAM)


def test_negative_numbers_pass_where_they_are_not_validated() -> None:
    assert scaled_value(-3, 10, FIXED) == -3
    assert percentage_value("-5%", 100) == -5
