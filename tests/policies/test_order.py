"""Orders: total, independent of the input's order, and truthful about what decided."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from policies.order import Criterion, Order

Item = tuple[int, int, str]

ORDER: Order[Item] = Order(
    (Criterion("first", lambda item: item[0]), Criterion("second", lambda item: -item[1])),
    last=lambda item: item[2],
    last_name="name",
)

items = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.text("ab", max_size=2)),
    unique_by=lambda item: item[2],
    max_size=6,
)


def test_the_weightiest_criterion_that_differs_decides() -> None:
    assert ORDER.sort([(1, 9, "a"), (0, 0, "b")]) == [(0, 0, "b"), (1, 9, "a")]
    assert ORDER.sort([(0, 1, "a"), (0, 2, "b")]) == [(0, 2, "b"), (0, 1, "a")]
    assert ORDER.sort([(0, 0, "b"), (0, 0, "a")]) == [(0, 0, "a"), (0, 0, "b")]


def test_the_separating_criterion_is_named() -> None:
    assert ORDER.separating((0, 0, "a"), (1, 0, "b")) == "first"
    assert ORDER.separating((0, 1, "a"), (0, 0, "b")) == "second"
    assert ORDER.separating((0, 0, "a"), (0, 0, "b")) == "name"


@given(items, st.data())
def test_sorting_does_not_depend_on_the_order_of_the_input(
    things: list[Item], data: st.DataObject
) -> None:
    assert ORDER.sort(data.draw(st.permutations(things))) == ORDER.sort(things)


@given(items)
def test_whoever_comes_first_is_preferred_by_the_criterion_that_is_named(
    things: list[Item],
) -> None:
    ranked = ORDER.sort(things)
    keys = {criterion.name: criterion.key for criterion in ORDER.criteria}
    for winner, rival in pairwise(ranked):
        name = ORDER.separating(winner, rival)
        assert keys[name](winner) < keys[name](rival) if name in keys else winner[2] < rival[2]
        weightier = list(keys)[: list(keys).index(name)] if name in keys else list(keys)
        assert all(keys[each](winner) == keys[each](rival) for each in weightier)
