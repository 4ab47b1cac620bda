"""The reprieve of pods on all rows, by NumPy and by the compiled module."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from policies.kubernetes.packed_names import COMPILED
from policies.preemption.columns.encoded_column import Bools
from policies.preemption.vectorized import disruption_budgets
from policies.preemption.vectorized.dry_run import reprieve, reprieve_by_depth
from policies.preemption.vectorized.filtering.framework import Capacity

MARKS = [[True, True], [True, False], [True, True]]


@st.composite
def dry_runs(draw: st.DrawFn) -> tuple[Bools, Bools, list[Capacity]]:
    """Draw the pods to reprieve, the victims before, and capacities of numbers and of marks."""
    shape = draw(st.integers(0, 4)), draw(st.integers(0, 5))
    marks = arrays.arrays(np.bool_, shape)
    amounts = arrays.arrays(np.int64, shape, elements=st.integers(0, 4)) | marks
    left = arrays.arrays(np.int64, shape[1], elements=st.integers(-1, 6))
    capacities = draw(st.lists(st.builds(Capacity, left, amounts), max_size=3))
    pods = draw(marks)
    return pods, pods | draw(marks), capacities


@given(dry_runs())
def test_both_reprieve_the_same_pods(drawn: tuple[Bools, Bools, list[Capacity]]) -> None:
    pods, before, capacities = drawn
    results = []
    for function in (reprieve, reprieve_by_depth):
        victims = before.copy()
        copies = [Capacity(each.left.copy(), each.taken) for each in capacities]
        function(pods, victims, copies)
        results.append((victims.tolist(), [each.left.tolist() for each in copies]))
    assert results[0] == results[1]


def test_pods_are_reprieved_while_the_capacity_lasts() -> None:
    pods, victims = np.array(MARKS), np.array(MARKS)
    capacity = Capacity(np.array([2, 1]), np.array([[1, 1], [2, 0], [1, 1]]))
    reprieve(pods, victims, [capacity])
    assert victims.tolist() == [[False, False], [True, False], [False, True]]
    assert capacity.left.tolist() == [0, 0]


def test_the_compiled_module_is_used_wherever_there_is_one() -> None:
    assert disruption_budgets.COMPILED == COMPILED


if COMPILED:
    from policies.preemption.vectorized import _dry_run

    ONE = np.ones((1, 2), np.bool_)
    NUMBERS = np.zeros((1, 2), np.int64)

    class TestCompiled:
        @pytest.mark.parametrize(
            ("pods", "victims", "left", "taken"),
            [
                (ONE, np.ones((2, 2), np.bool_), NUMBERS[0], NUMBERS),
                (ONE, np.ones((1, 3), np.bool_), NUMBERS[0], NUMBERS),
                (ONE, ONE.copy(), NUMBERS[0, :1], NUMBERS),
                (ONE, ONE.copy(), NUMBERS[0], NUMBERS[:, :1]),
                (ONE, ONE.copy(), NUMBERS[0], NUMBERS[:0]),
                (ONE, ONE.copy(), NUMBERS[0], NUMBERS.astype(np.int32)),
                (ONE, ONE.copy(), ONE[0], NUMBERS),
                (ONE[0], ONE.copy(), NUMBERS[0], NUMBERS),
                (ONE, ONE.copy(), NUMBERS[0], np.zeros((2, 4), np.int64)[:, ::2]),
            ],
        )
        def test_refuses_arrays_of_other_shapes(
            self, pods: object, victims: object, left: object, taken: object
        ) -> None:
            with pytest.raises(ValueError, match="not"):
                _dry_run.reprieve(pods, victims, ((left, taken),))  # type: ignore[arg-type]

        @pytest.mark.parametrize(
            ("classes", "covering", "allowed"),
            [
                (NUMBERS + 1, NUMBERS[:, :1], NUMBERS[0]),
                (NUMBERS - 1, NUMBERS[:, :1], NUMBERS[0]),
                (NUMBERS, NUMBERS + 2, NUMBERS[0]),
                (NUMBERS[:, :1], NUMBERS, NUMBERS[0]),
                (NUMBERS, NUMBERS, ONE[0]),
            ],
        )
        def test_refuses_numbers_out_of_range(
            self, classes: object, covering: object, allowed: object
        ) -> None:
            with pytest.raises(ValueError, match="not"):
                _dry_run.count_violations(
                    ONE,
                    classes,  # type: ignore[arg-type]
                    covering,  # type: ignore[arg-type]
                    allowed,  # type: ignore[arg-type]
                    ONE.copy(),
                    1,
                )
