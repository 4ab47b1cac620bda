"""Expectations: upstream's own tables, run step by step on a clock that jumps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from extender.kube.controller_runtime.expectations import (
    EXPIRY_SECONDS,
    ControllerExpectations,
    UIDTrackingControllerExpectations,
)
from tests.builders.replicas import VECTORS
from tests.extender.kube.conftest import SteppedClock

CASES = VECTORS["expectations"]
WEB = "default/web"

Step = Mapping[str, Any]
Play = Callable[[Step], object]


def counting(
    expectations: ControllerExpectations, clock: SteppedClock, key: str
) -> Mapping[str, Play]:
    def times(observe: Callable[[str], None]) -> Play:
        def play(step: Step) -> None:
            for _ in range(step["times"]):
                observe(key)

        return play

    return {
        "set": lambda step: expectations.expect(key, step["add"], step["delete"]),
        "expect_creations": lambda step: expectations.expect(key, step["n"], 0),
        "creation_observed": times(expectations.creation_observed),
        "deletion_observed": times(expectations.deletion_observed),
        "satisfied": lambda _: expectations.satisfied(key),
        "counts": lambda _: list(expectations.counts(key) or ()),
        "exists": lambda _: expectations.counts(key) is not None,
        "advance": lambda step: clock.advance(step["seconds"]),
    }


def tracking(expectations: UIDTrackingControllerExpectations, key: str) -> Mapping[str, Play]:
    return {
        "expect_deletions": lambda step: expectations.expect_deletions(key, step["keys"]),
        "deletion_observed_key": lambda step: expectations.deletion_observed(key, step["key"]),
        "satisfied": lambda _: expectations.satisfied(key),
        "counts": lambda _: list(expectations.counts(key) or ()),
        "exists": lambda _: expectations.counts(key) is not None,
        "tracked": lambda _: expectations.deletions(key),
        "delete_expectations": lambda _: expectations.forget(key),
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_upstreams_tables(case: Mapping[str, Any]) -> None:
    clock = SteppedClock()
    if case["uid_tracking"]:
        plays = tracking(UIDTrackingControllerExpectations(clock), case["key"])
    else:
        plays = counting(ControllerExpectations(clock), clock, case["key"])
    for step in case["steps"]:
        found = plays[step["op"]](step)
        if "expect" in step:
            assert found == step["expect"], step


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def expectations(clock: SteppedClock) -> UIDTrackingControllerExpectations:
    return UIDTrackingControllerExpectations(clock)


def test_creations_keep_the_names_of_deletions_but_expect_none(
    expectations: UIDTrackingControllerExpectations,
) -> None:
    expectations.expect_deletions(WEB, ["default/a"])
    expectations.expect_creations(WEB, 1)
    assert expectations.counts(WEB) == (1, 0)
    assert expectations.deletions(WEB) == frozenset({"default/a"})
    expectations.creation_observed(WEB)
    assert expectations.satisfied(WEB)


def test_a_deletion_that_is_observed_twice_counts_once(
    expectations: UIDTrackingControllerExpectations,
) -> None:
    expectations.expect_deletions(WEB, ["default/a", "default/b"])
    expectations.deletion_observed(WEB, "default/a")
    expectations.deletion_observed(WEB, "default/a")
    assert expectations.counts(WEB) == (0, 1)


def test_keys_are_independent(expectations: UIDTrackingControllerExpectations) -> None:
    expectations.expect_creations(WEB, 1)
    expectations.expect_deletions("default/db", ["default/a"])
    expectations.creation_observed("default/db")
    expectations.deletion_observed(WEB, "default/a")
    assert not expectations.satisfied(WEB)
    assert not expectations.satisfied("default/db")
    expectations.forget(WEB)
    assert expectations.satisfied(WEB)
    assert expectations.counts("default/db") == (-1, 1)


def test_new_expectations_replace_old_ones(
    clock: SteppedClock, expectations: UIDTrackingControllerExpectations
) -> None:
    expectations.expect_creations(WEB, 1)
    clock.advance(EXPIRY_SECONDS + 1)
    assert expectations.satisfied(WEB)
    assert expectations.counts(WEB) == (1, 0)
    expectations.expect_creations(WEB, 2)
    assert not expectations.satisfied(WEB)
