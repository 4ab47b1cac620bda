"""Orders: total, independent of the input's order, with the deciding criterion."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from policies.kubernetes.criteria import ApproximateCriterion, Criterion, NonTransitiveOrder, Order

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
    assert ORDER.deciding_criterion((0, 0, "a"), (1, 0, "b")) == "first"
    assert ORDER.deciding_criterion((0, 1, "a"), (0, 0, "b")) == "second"
    assert ORDER.deciding_criterion((0, 0, "a"), (0, 0, "b")) == "name"


@given(items, st.data())
def test_sorting_does_not_depend_on_the_order_of_the_input(
    things: list[Item], data: st.DataObject
) -> None:
    assert ORDER.sort(data.draw(st.permutations(things))) == ORDER.sort(things)


@given(items)
def test_the_first_is_preferred_by_the_named_criterion(things: list[Item]) -> None:
    ranked = ORDER.sort(things)
    keys = {criterion.name: criterion.key for criterion in ORDER.criteria}
    for winner, rival in pairwise(ranked):
        name = ORDER.deciding_criterion(winner, rival)
        assert keys[name](winner) < keys[name](rival) if name in keys else winner[2] < rival[2]
        weightier = list(keys)[: list(keys).index(name)] if name in keys else list(keys)
        assert all(keys[each](winner) == keys[each](rival) for each in weightier)


Rough = tuple[int, int, int, str]

ROUGHLY: NonTransitiveOrder[Rough] = NonTransitiveOrder(
    (
        Criterion("first", lambda item: item[0]),
        ApproximateCriterion(
            "tens", lambda item: item[1] // 10, lambda item: item[1], "name, as tens are equal"
        ),
        Criterion("second", lambda item: item[2]),
    ),
    last=lambda item: item[3],
    last_name="name",
)

rough_items = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from([7, 8, 9, 10]),
        st.integers(0, 2),
        st.text("ab", max_size=3),
    ),
    unique_by=lambda item: item[3],
    max_size=9,
)


def test_a_coarse_criterion_separates_or_stops_or_lets_pass() -> None:
    assert ROUGHLY.compare((0, 9, 1, "b"), (0, 10, 0, "a")) == (-1, "tens")
    assert ROUGHLY.compare((0, 8, 0, "b"), (0, 7, 1, "a")) == (1, "name, as tens are equal")
    assert ROUGHLY.compare((0, 7, 0, "b"), (0, 7, 1, "a")) == (-1, "second")
    assert ROUGHLY.compare((0, 7, 0, "b"), (0, 7, 0, "a")) == (1, "name")
    assert ROUGHLY.compare((0, 7, 0, "a"), (0, 7, 0, "a")) == (0, "name")


def test_a_cycle_of_three_is_possible() -> None:
    a, b, c = (0, 7, 1, "1"), (0, 8, 0, "2"), (0, 7, 0, "3")
    assert [ROUGHLY.compare(*two).sign for two in ((a, b), (b, c), (c, a))] == [-1, -1, -1]
    assert ROUGHLY.sort([c, b, a]) == [a, b, c]


def test_neighbours_that_are_the_same_are_sorted_by_what_follows() -> None:
    a, b, c = (0, 7, 1, "1"), (0, 7, 0, "2"), (0, 8, 9, "3")
    assert ROUGHLY.sort([a, b, c]) == [b, a, c]


@given(rough_items, st.data())
def test_sorting_with_stops_does_not_depend_on_the_order_of_the_input(
    things: list[Rough], data: st.DataObject
) -> None:
    assert ROUGHLY.sort(data.draw(st.permutations(things))) == ROUGHLY.sort(things)


@given(rough_items)
def test_adjacent_items_are_in_order(things: list[Rough]) -> None:
    ranked = ROUGHLY.sort(things)
    assert sorted(ranked) == sorted(things)
    assert all(ROUGHLY.compare(one, other).sign == -1 for one, other in pairwise(ranked))


@given(rough_items)
def test_without_a_cycle_all_pairs_are_in_order(things: list[Rough]) -> None:
    def sign(one: Rough, other: Rough) -> int:
        return ROUGHLY.compare(one, other).sign

    ranked = ROUGHLY.sort(things)
    threes = combinations(ranked, 3)
    circles = any(sign(a, b) == sign(b, c) == sign(c, a) for a, b, c in threes)
    assert circles or all(sign(*two) == -1 for two in combinations(ranked, 2))


@given(items)
def test_without_stops_it_sorts_as_an_order(things: list[Item]) -> None:
    plain: NonTransitiveOrder[Item] = NonTransitiveOrder(
        ORDER.criteria, ORDER.last, ORDER.last_name
    )
    assert plain.sort(things) == ORDER.sort(things)
    assert all(
        plain.compare(one, other) == (-1, ORDER.deciding_criterion(one, other))
        for one, other in pairwise(ORDER.sort(things))
    )
