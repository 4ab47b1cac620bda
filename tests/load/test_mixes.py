"""The calls, rates and phases of a load run, and its changes of pods."""

from __future__ import annotations

import ast
import random
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from extender.config.component_config import ConnectionLimits
from tests.load.mixes import (
    ABOVE,
    CAPACITY,
    CLOSED,
    CROWD,
    CROWDED,
    ECHO_CAPACITY,
    FULL,
    KINDS,
    OPEN,
    QUICK,
    STEADY,
    burst_calls,
    drawn,
    due,
    gaps,
)
from tests.load.pod_changes import Write, writes

LOCUSTFILE = Path("tests/load/locustfile.py")


def test_the_duration_of_runs() -> None:
    assert sum(phase.seconds for phase in QUICK.phases) == 120
    [steady] = [phase for phase in FULL.phases if phase.name == STEADY]
    assert steady.seconds == 600


def test_every_user_of_a_phase_is_a_class_of_the_locustfile() -> None:
    tree = ast.parse(LOCUSTFILE.read_text())
    classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    assert {user for phase in QUICK.phases for user in phase.users} < classes


def test_the_capacity_is_known_before_a_rate_is_a_multiple_of_it() -> None:
    names = [phase.name for phase in QUICK.phases]
    asked = [phase.name for phase in QUICK.phases if phase.rate]
    assert asked == [STEADY, OPEN, ABOVE]
    assert asked == names[names.index(ECHO_CAPACITY) + 1 :][: len(asked)]
    assert names.index(CAPACITY) < names.index(ECHO_CAPACITY)


def test_a_crowd_exceeds_the_limit_of_connections_but_not_twice() -> None:
    [crowded] = [phase for phase in QUICK.phases if phase.name == CROWDED]
    assert crowded.users == {"SlowFinisher": CROWD}
    assert 1.4 * ConnectionLimits().connections < CROWD < 2 * ConnectionLimits().connections


def test_answers_are_due_in_phases_with_all_kinds_of_calls() -> None:
    filters, few, many = due(QUICK).values()
    assert (filters, few, many) == pytest.approx((84 / 1.5, 84, 84 / 3))
    assert due(FULL)[KINDS[0].name] == pytest.approx(755 / 3)


def test_kinds_are_drawn_by_their_weights_and_bodies_in_turn() -> None:
    calls = list(islice(drawn(random.Random(1)), 5_000))
    found = Counter(kind.name for kind, _ in calls)
    weights = {kind.name: kind.weight for kind in KINDS}
    for name, count in found.items():
        assert count / 5_000 == pytest.approx(weights[name] / sum(weights.values()), abs=0.03)
    for kind in KINDS:
        numbers = [number for drew, number in calls if drew is kind]
        assert numbers[: kind.bodies + 1] == [*range(kind.bodies), 0]
    assert calls == list(islice(drawn(random.Random(1)), 5_000))


@pytest.mark.parametrize(("rate", "calls"), [(0.5, 2), (7.4, 7), (80.0, 16)])
def test_a_burst_is_a_second_of_the_even_pace_or_less(rate: float, calls: int) -> None:
    assert burst_calls(rate) == calls


def test_arrivals_come_at_their_rate() -> None:
    assert sum(islice(gaps(random.Random(1), 50.0), 5_000)) == pytest.approx(100, rel=0.05)


def test_arrivals_double() -> None:
    passed, counts = 0.0, Counter[int]()
    for gap in gaps(random.Random(1), 100.0, doubling=5.0):
        passed += gap
        if passed >= 20:
            break
        counts[int(passed // 5)] += 1
    assert all(counts[n + 1] / counts[n] == pytest.approx(2, rel=0.15) for n in range(3))


def test_every_change_is_one_that_the_server_can_make() -> None:
    present: dict[str, bool] = {}
    starts = set[str]()
    most = 0
    for write in islice(writes(5_000), 20_000):
        name = write.path.strip("/").split("?")[0].removesuffix("/status")
        match write:
            case Write("POST", body={"metadata": {"name": new}}):
                assert new not in present
                present[new] = False
            case Write("DELETE"):
                assert present.pop(name)
            case Write("PATCH", body={"status": {"startTime": started}}):
                assert started not in starts
                starts.add(started)
                present[name] = True
            case _:
                assert present[name]
        most = max(most, len(present))
    assert 800 <= most <= 1_600


def test_changes_are_the_same_each_time() -> None:
    assert list(islice(writes(100), 500)) == list(islice(writes(100), 500))


def test_users_of_the_closed_loop_share_their_pace() -> None:
    [steady] = [phase for phase in QUICK.phases if phase.name == STEADY]
    assert steady.users["Closed"] == CLOSED
