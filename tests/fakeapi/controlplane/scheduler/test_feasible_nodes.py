"""The number of nodes that are filtered or tried, and their choice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.config.plugin_args import DefaultPreemptionArgs
from fakeapi.controlplane.scheduler.feasible_nodes import (
    candidates_to_find,
    feasible_nodes_to_find,
    first_feasible,
    rotated,
    shortlist,
)
from policies.preemption.decision import Candidate, VictimSet
from tests.builders import pod

ENOUGH_NODES = [
    (99, 0, 99), (100, 0, 100), (150, 0, 100), (1000, 0, 420), (5000, 0, 500), (6000, 0, 300),
    (20000, 0, 1000), (1000, 70, 700), (1000, 5, 100), (1000, 100, 1000),
]  # fmt: skip
"""Nodes, percentage, how many that fit are enough."""


@pytest.mark.parametrize(("nodes", "percentage", "enough"), ENOUGH_NODES)
def test_the_number_of_feasible_nodes_to_find(nodes: int, percentage: int, enough: int) -> None:
    assert feasible_nodes_to_find(nodes, percentage) == enough


ENOUGH_CANDIDATES = [
    (50, None, None, 50), (100, None, None, 100), (500, None, None, 100), (5000, None, None, 500),
    (5000, 0, 1, 1), (5000, 50, 0, 2500), (30, 10, 5, 5), (5, 100, 0, 5), (9, 10, 0, 0),
]  # fmt: skip
"""Potential nodes, percentage, absolute number, how many candidates are enough."""


@pytest.mark.parametrize(("potential", "percentage", "absolute", "enough"), ENOUGH_CANDIDATES)
def test_the_number_of_candidates_to_find(
    potential: int, percentage: int | None, absolute: int | None, enough: int
) -> None:
    args = DefaultPreemptionArgs(
        min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute
    )
    assert candidates_to_find(potential, args) == enough


def test_a_search_wraps_around() -> None:
    order = rotated(["a", "b", "c", "d"], 2)
    assert order == ["c", "d", "a", "b"]
    assert first_feasible(order, {"a", "b", "d"}, 2) == (["d", "a"], 3)
    assert first_feasible(order, {"a"}, 2) == (["a"], 4)


def candidates(text: str) -> dict[str, Candidate]:
    """Build candidates: a capital letter violates a budget, and a dot is no candidate."""
    return {
        str(place): Candidate(str(place), VictimSet((pod("p"),), int(letter.isupper())))
        for place, letter in enumerate(text)
        if letter != "."
    }


LISTED = [
    ("aaaa", 2, "01"), ("AAaa", 2, "201"), ("AAAA", 2, "01"), ("A.a.a", 9, "240"),
    ("AAAa", 2, "301"), ("....", 2, ""), ("aA", 1, "0"), ("Aa", 1, "10"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "enough", "listed"), LISTED)
def test_candidates_that_a_dry_run_lists(text: str, enough: int, listed: str) -> None:
    order = [str(place) for place in range(len(text))]
    found = shortlist(order, candidates(text), enough)
    assert "".join(each.node for each in found) == listed


@given(st.text("aA.", max_size=12), st.integers(1, 12))
def test_a_harmless_candidate_is_listed_if_there_is_any(text: str, enough: int) -> None:
    order = [str(place) for place in range(len(text))]
    found = shortlist(order, candidates(text), enough)
    harmless = [each for each in found if not each.victims.violations]
    assert bool(harmless) == ("a" in text)
    assert len(harmless) <= enough
    assert len(found) - len(harmless) <= enough
