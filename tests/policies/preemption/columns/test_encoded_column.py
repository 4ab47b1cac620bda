"""A column of codes behaves as a plain list of its values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from policies.preemption.columns.encoded_column import DictionaryColumn

COLOURS = st.sampled_from(["red", "green", "blue", None])
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("append"), COLOURS),
        st.tuples(st.just("set"), COLOURS, st.integers(0, 50)),
        st.tuples(st.just("drop"), st.integers(0, 50)),
    ),
    max_size=40,
)


def values(column: DictionaryColumn[str]) -> list[str]:
    return [column.values[code] for code in column.rows().tolist()]


def numbered(start: int, stop: int) -> list[str]:
    return [f"value-{number}" for number in range(start, stop)]


def test_a_value_of_many_rows_is_kept_once() -> None:
    column = DictionaryColumn(["a", "b", "a"])
    assert values(column) == ["a", "b", "a"]
    assert sorted(column.values) == ["a", "b"]


def test_many_rows_can_be_added() -> None:
    column = DictionaryColumn[str]([])
    for value in numbered(0, 100):
        column.append(value)
    assert values(column) == numbered(0, 100)


def test_the_last_row_moves_into_the_place_of_one_that_is_dropped() -> None:
    column = DictionaryColumn(["a", "b", "c", "d"])
    column.drop(1)
    assert values(column) == ["a", "d", "c"]
    column.drop(2)
    assert values(column) == ["a", "d"]


def test_the_only_row_can_be_dropped_and_another_added() -> None:
    column = DictionaryColumn(["a"])
    column.drop(0)
    assert values(column) == []
    assert column.where(lambda _: True).tolist() == []
    column.append("b")
    assert values(column) == ["b"]


def test_a_lookup_evaluates_each_value_once() -> None:
    asked: list[str] = []
    column = DictionaryColumn(["a", "b", "a", "a"])

    def is_a(value: str) -> bool:
        asked.append(value)
        return value == "a"

    assert column.where(is_a).tolist() == [True, False, True, True]
    assert sorted(asked) == ["a", "b"]


def test_a_value_that_was_never_seen_has_no_code() -> None:
    column = DictionaryColumn(["a", "b"])
    assert column.values[column.code_of("b")] == "b"
    assert column.code_of("c") == -1


def test_a_row_that_always_changes_leaves_no_values() -> None:
    column = DictionaryColumn(["steady", "changing", "steady too"])
    for value in numbered(0, 1000):
        column.set(1, value)
        assert values(column) == ["steady", value, "steady too"]
        assert len(column.values) < 100
    assert column.code_of("value-1") == -1


def test_lookups_and_codes_survive_dropped_values() -> None:
    column = DictionaryColumn(numbered(0, 10))
    for value in numbered(1000, 1200):
        column.set(9, value)
    assert column.where(lambda each: each in ("value-3", "value-1199")).tolist() == [
        row in (3, 9) for row in range(10)
    ]
    assert column.rows().tolist() == [
        column.code_of(each) for each in [*numbered(0, 9), "value-1199"]
    ]


def test_short_lived_rows_leave_no_values() -> None:
    column = DictionaryColumn(["steady"])
    for value in numbered(0, 1000):
        column.append(value)
        column.drop(1)
    assert values(column) == ["steady"]
    assert len(column.values) < 100


@given(st.lists(COLOURS, max_size=5), CHANGES)
def test_any_history_of_rows(rows: list[str | None], changes: list[tuple[object, ...]]) -> None:
    column = DictionaryColumn(rows)
    expected = list(rows)
    for change in changes:
        match change:
            case "append", value:
                column.append(value)  # type: ignore[arg-type]
                expected.append(value)  # type: ignore[arg-type]
            case "set", value, int(place) if expected:
                column.set(place % len(expected), value)  # type: ignore[arg-type]
                expected[place % len(expected)] = value  # type: ignore[call-overload]
            case "drop", int(place) if expected:
                row = place % len(expected)
                column.drop(row)
                expected[row] = expected[-1]
                expected.pop()
        assert [column.values[code] for code in column.rows().tolist()] == expected
