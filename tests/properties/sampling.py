"""How many cases a test draws: a sample in ``make test``, all of them in ``make test-slow``."""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings


def examples(many: int) -> int:
    """Return the number of examples of a test that draws ``many`` where others draw 100."""
    return max(1, many * settings().max_examples // 100)


def seeds(few: int, many: int) -> list[int | ParameterSet]:
    """Return ``many`` seeds as parameters of a test; all but the first ``few`` are slow."""
    slow = (pytest.param(seed, marks=pytest.mark.slow) for seed in range(few, many))
    return [*range(few), *slow]
