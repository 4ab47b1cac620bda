"""Curves: amounts between points, and the times at which they exceed a limit."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.controlplane.kubelet.usage_curves import Curve, CurveStep, curve_from_steps

UP = curve_from_steps(100, [CurveStep(10, 300, 20), CurveStep(40, 50)])


@pytest.mark.parametrize(
    ("offset", "amount"),
    [
        *((-5, 100), (0, 100), (9, 100), (10, 100), (11, 110), (20, 200), (30, 300), (39, 300)),
        *((40, 50), (1000, 50)),
    ],
)
def test_amounts_between_points_are_linear(offset: int, amount: int) -> None:
    assert UP.at(offset) == amount


def test_a_step_ends_the_previous_one() -> None:
    curve = curve_from_steps(0, [CurveStep(0, 100, 10), CurveStep(5, 0, 10)])
    assert [curve.at(offset) for offset in (0, 4, 5, 10, 15, 99)] == [0, 40, 50, 25, 0, 0]


@pytest.mark.parametrize(
    ("limit", "time"), [(99, 0), (100, 11), (109, 11), (110, 12), (299, 30), (300, None)]
)
def test_the_time_at_which_a_limit_is_exceeded(limit: int, time: int | None) -> None:
    assert UP.exceeds(limit) == time


steps = st.lists(
    st.builds(CurveStep, st.integers(0, 60), st.integers(0, 50), st.integers(0, 20)), max_size=5
).map(lambda found: sorted(found, key=lambda step: step.at))


@given(st.integers(0, 50), steps, st.integers(0, 50))
def test_the_time_at_which_a_limit_is_exceeded_is_the_first_one(
    first: int, taken: list[CurveStep], limit: int
) -> None:
    curve = curve_from_steps(first, taken)
    plain = next((time for time in range(100) if curve.at(time) > limit), None)
    assert curve.exceeds(limit) == plain


@given(st.integers(0, 50), steps)
def test_a_curve_ends_with_its_last_amount(first: int, taken: list[CurveStep]) -> None:
    curve = curve_from_steps(first, taken)
    assert curve.at(1000) == (taken[-1].amount if taken else first)
    assert all(before <= after for (before, _), (after, _) in pairwise(curve.points))
    assert all(0 <= curve.at(time) <= 50 for time in range(100))


def test_equal_curves_have_equal_points() -> None:
    assert curve_from_steps(1, [CurveStep(3, 5)]) == Curve(((0, 1), (3, 1), (3, 5)))
