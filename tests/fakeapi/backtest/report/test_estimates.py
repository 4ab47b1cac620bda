"""Means and their confidence intervals."""

from __future__ import annotations

from math import exp, lgamma, log, pi, sqrt

import pytest

from fakeapi.backtest.report.estimates import Estimate, estimate, t_quantile


@pytest.mark.parametrize(
    ("values", "mean", "margin"),
    [
        ([10, 12, 17], 13, 8.957),  # s = 3.606, t = 4.303
        ([1, 3], 2, 12.706),  # s = √2, t = 12.706
        ([5, 5, 5, 5], 5, 0),
        ([-2, -3, -2], -2.333, 1.434),
    ],
)
def test_known_intervals(values: list[float], mean: float, margin: float) -> None:
    found = estimate(values)
    assert found is not None
    assert found.mean == pytest.approx(mean, abs=0.001)
    assert found.margin == pytest.approx(margin, abs=0.001)
    assert found.low == pytest.approx(mean - margin, abs=0.001)
    assert found.seeds == len(values)


def test_one_value_has_no_interval_and_none_has_no_mean() -> None:
    assert estimate([7]) == Estimate(7, None, None, 1)
    assert estimate([]) is None


@pytest.mark.parametrize(
    ("found", "excludes"),
    [
        (Estimate(2, 1, 3, 5), True),
        (Estimate(-2, -3, -1, 5), True),
        (Estimate(2, -1, 5, 5), False),
        (Estimate(0, 0, 0, 5), False),
        (Estimate(2, 2, 2, 5), True),
        (Estimate(2, None, None, 1), False),
    ],
)
def test_whether_an_interval_excludes_zero(found: Estimate, excludes: object) -> None:
    assert found.excludes_zero is excludes


def density(t: float, degrees: int) -> float:
    log_ratio = lgamma((degrees + 1) / 2) - lgamma(degrees / 2)
    shape = exp(-(degrees + 1) / 2 * log(1 + t * t / degrees))
    return exp(log_ratio) / sqrt(degrees * pi) * shape


@pytest.mark.parametrize("degrees", [*range(1, 31), 31, 32, 40, 99, 500])
def test_95_percent_of_the_distribution_are_within_the_quantile(degrees: int) -> None:
    steps = 2000
    width = t_quantile(degrees) / steps
    weights = [4 if place % 2 else 2 for place in range(1, steps)]  # Simpson's rule
    inner = sum(w * density(place * width, degrees) for place, w in enumerate(weights, 1))
    half = (density(0, degrees) + inner + density(steps * width, degrees)) * width / 3
    assert 2 * half == pytest.approx(0.95, abs=5e-5)
