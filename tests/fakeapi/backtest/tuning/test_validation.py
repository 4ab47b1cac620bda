"""Improvements, gaps and recommendations by hand-computed numbers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fakeapi.backtest.tuning.objectives import parse_objectives
from fakeapi.backtest.tuning.validation import (
    ComparedValues,
    ObjectiveValidation,
    is_recommended,
    validate,
)
from tests.builders.backtests import workload

MINIMIZED = parse_objectives(["disruptions"], [], workload())
MAXIMIZED = parse_objectives([], ["finished-pods"], workload())
TWO = (*MINIMIZED, *MAXIMIZED)


def values(base: Sequence[float], chosen: Sequence[float]) -> ComparedValues:
    return ComparedValues([dict(enumerate(base))], [dict(enumerate(chosen))])


def test_the_gap_is_the_part_of_the_improvement_that_is_lost_on_held_out_segments() -> None:
    """Improvements of 40 % and 30 % in training, 20 % and 14 % held out: gaps of 20 and 16."""
    (found,) = validate(MINIMIZED, values([100, 100], [60, 70]), values([50, 50], [40, 43]))
    assert found.training.improvement is not None
    assert found.training.improvement.mean == pytest.approx(0.35)
    assert found.held_out.improvement is not None
    assert found.held_out.improvement.mean == pytest.approx(0.17)
    assert found.held_out.difference is not None
    assert found.held_out.difference.mean == pytest.approx(-8.5)
    assert found.gap is not None
    assert found.gap.mean == pytest.approx(0.18)
    assert found.gap.margin == pytest.approx(12.706 * 0.02)  # s = 0.0283, n = 2: s / √2 = 0.02


def test_what_is_maximized_improves_by_growing() -> None:
    (found,) = validate(MAXIMIZED, values([100], [125]), values([100], [110]))
    assert found.gap is not None
    assert found.gap.mean == pytest.approx(0.15)


def test_a_seed_without_anything_to_improve_has_no_share_of_it() -> None:
    (found,) = validate(MINIMIZED, values([0, 10], [0, 5]), values([0, 10], [3, 5]))
    assert found.training.improvement is not None
    assert (found.training.improvement.mean, found.training.improvement.seeds) == (0.25, 2)
    assert found.held_out.improvement is not None
    assert (found.held_out.improvement.mean, found.held_out.improvement.seeds) == (0.5, 1)
    assert found.gap is not None
    assert (found.gap.mean, found.gap.margin) == (0.0, None)


def held_out(
    disruptions: tuple[list[float], list[float]], finished: tuple[list[float], list[float]]
) -> tuple[ObjectiveValidation, ...]:
    """Return the validation by values of the base and of the chosen policy."""
    pairs = [disruptions, finished]
    compared = ComparedValues(
        [dict(enumerate(base)) for base, _ in pairs],
        [dict(enumerate(chosen)) for _, chosen in pairs],
    )
    return validate(TWO, compared, compared)


FEWER = ([10.0, 20, 30], [8.0, 18, 28])
MORE = ([10.0, 20, 30], [12.0, 22, 32])
UNCERTAIN = ([10.0, 20, 30], [9.0, 22, 20])


@pytest.mark.parametrize(
    ("disruptions", "finished", "changes", "recommended"),
    [
        (FEWER, MORE, ("better", "better"), True),
        (FEWER, UNCERTAIN, ("better", "uncertain"), True),
        (FEWER, FEWER, ("better", "worse"), False),
        (UNCERTAIN, UNCERTAIN, ("uncertain", "uncertain"), False),
        (MORE, UNCERTAIN, ("worse", "uncertain"), False),
        (([10.0], [1.0]), ([1.0], [1.0]), ("uncertain", "uncertain"), False),
    ],
)
def test_a_policy_is_recommended_if_it_is_certainly_better(
    disruptions: tuple[list[float], list[float]],
    finished: tuple[list[float], list[float]],
    changes: tuple[str, str],
    recommended: object,
) -> None:
    found = held_out(disruptions, finished)
    assert tuple(each.held_out.change for each in found) == changes
    assert is_recommended(found) is recommended
