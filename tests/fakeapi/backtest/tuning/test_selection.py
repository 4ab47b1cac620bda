"""The Pareto front, and which policy of it is chosen."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fakeapi.backtest.simulation.simulated_scheduler import SimulatedPolicy
from fakeapi.backtest.tuning.objectives import parse_objectives
from fakeapi.backtest.tuning.selection import TriedPolicy, choose, pareto_front
from tests.builders.backtests import workload
from tests.fakeapi.backtest.tuning.tuned_policies import BUILT_IN, SOURCES, read

ONE = parse_objectives(["disruptions"], [], workload())
TWO = parse_objectives(["disruptions"], ["finished-pods"], workload())


def tried(*values: Sequence[float]) -> list[TriedPolicy]:
    """Return policies by their values; those of two seeds are 1 above and 1 below them."""
    policy = SimulatedPolicy("trial", SOURCES[BUILT_IN])
    return [
        TriedPolicy(number, policy, read(BUILT_IN), tuple({0: v + 1, 1: v - 1} for v in each))
        for number, each in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("values", "front", "chosen"),
    [
        ([(5,)], [0], 0),
        ([(5,), (3,), (4,)], [1], 1),
        ([(5,), (3,), (3,)], [1], 1),
        ([(5,), (5,)], [0], 0),
    ],
)
def test_of_one_objective_the_best_is_chosen(
    values: list[tuple[float]], front: list[int], chosen: int
) -> None:
    found = tried(*values)
    assert [each.trial for each in pareto_front(found, ONE)] == front
    assert choose(found, ONE).trial == chosen


@pytest.mark.parametrize(
    ("values", "front", "chosen"),
    [
        pytest.param([(100, 900), (60, 880), (50, 700)], [2, 1, 0], 1, id="the knee"),
        pytest.param([(100, 900), (60, 880), (99, 901)], [1, 2], 2, id="one better than the base"),
        pytest.param([(100, 900), (90, 910), (70, 905)], [2, 1], 2, id="of two, the knee"),
        pytest.param([(100, 900), (100, 800), (110, 900)], [0], 0, id="the base"),
        pytest.param([(100, 900), (100, 950)], [1], 1, id="equal in one objective"),
    ],
)
def test_of_two_objectives_the_knee_is_chosen(
    values: list[tuple[float, float]], front: list[int], chosen: int
) -> None:
    found = tried(*values)
    assert [each.trial for each in pareto_front(found, TWO)] == front
    assert choose(found, TWO).trial == chosen
