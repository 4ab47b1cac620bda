"""The annotation for deletion costs: what counts, and what is no cost at all."""

from __future__ import annotations

from typing import Any

import pytest

from policies.replicaset import is_deletion_cost, parse_deletion_cost
from tests.builders.replicas import VECTORS


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
def test_anything_else_counts_as_nothing(text: str) -> None:
    assert (parse_deletion_cost(text), is_deletion_cost(text)) == (0, False)
