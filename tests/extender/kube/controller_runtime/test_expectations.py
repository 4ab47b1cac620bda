"""Expectations: upstream's own tables, played step by step on a clock that jumps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.kube.controller_runtime.expectations import (
    EXPIRY_SECONDS,
    ControllerExpectations,
    UIDTrackingControllerExpectations,
)
from tests.extender.kube.conftest import SteppedClock

CASES: list[dict[str, Any]] = msgspec.json.decode(
    (Path(__file__).parents[3] / "vectors" / "replicaset.json").read_bytes()
)["expectations"]

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


def test_creations_leave_the_names_of_deletions_but_wait_for_none() -> None:
    expectations = UIDTrackingControllerExpectations(SteppedClock())
    expectations.expect_deletions("default/web", ["default/a"])
    expectations.expect_creations("default/web", 1)
    assert expectations.counts("default/web") == (1, 0)
    assert expectations.deletions("default/web") == frozenset({"default/a"})
    expectations.creation_observed("default/web")
    assert expectations.satisfied("default/web")


def test_a_deletion_that_is_seen_twice_counts_once() -> None:
    expectations = UIDTrackingControllerExpectations(SteppedClock())
    expectations.expect_deletions("default/web", ["default/a", "default/b"])
    expectations.deletion_observed("default/web", "default/a")
    expectations.deletion_observed("default/web", "default/a")
    assert expectations.counts("default/web") == (0, 1)


def test_keys_do_not_touch_each_other() -> None:
    expectations = UIDTrackingControllerExpectations(SteppedClock())
    expectations.expect_creations("default/web", 1)
    expectations.expect_deletions("default/db", ["default/a"])
    expectations.creation_observed("default/db")
    expectations.deletion_observed("default/web", "default/a")
    assert not expectations.satisfied("default/web")
    assert not expectations.satisfied("default/db")
    expectations.forget("default/web")
    assert expectations.satisfied("default/web")
    assert expectations.counts("default/db") == (-1, 1)


def test_new_expectations_replace_old_ones() -> None:
    clock = SteppedClock()
    expectations = UIDTrackingControllerExpectations(clock)
    expectations.expect_creations("default/web", 1)
    clock.advance(EXPIRY_SECONDS + 1)
    assert expectations.satisfied("default/web")
    assert expectations.counts("default/web") == (1, 0)
    expectations.expect_creations("default/web", 2)
    assert not expectations.satisfied("default/web")
