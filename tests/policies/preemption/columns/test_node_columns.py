"""Names and rows: packed names are found just where the same names as strings are."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from policies.kubernetes.packed_names import pack_names
from policies.preemption.columns.node_columns import NodeRowIndex

NAMES = ("a", "b", "node-1", "node-2", "nöd", 'quo"ted')
plain = st.sampled_from(NAMES[:4])
asked = st.lists(plain, unique=True) | st.lists(st.sampled_from([*NAMES, "unknown"]))
changes = st.lists(plain | st.sampled_from(NAMES), max_size=4)


def known(rows: NodeRowIndex, among: Collection[str]) -> tuple[list[str], list[int]]:
    names, numbers = rows.known(among)
    return list(names), numbers.tolist()


@given(st.lists(st.tuples(changes, asked), max_size=5))
def test_names_are_found_packed_or_not_while_rows_come_and_go(
    history: list[tuple[list[str], list[str]]],
) -> None:
    rows = NodeRowIndex()
    for changed, among in history:
        for name in changed:
            if name in rows.index:
                rows.drop(name)
            else:
                assert rows.append(name) == rows.index[name]
        assert rows.index == {name: row for row, name in enumerate(rows.names)}
        there = [name for name in dict.fromkeys(among) if name in rows.index]
        expected = (there, [rows.index[name] for name in there])
        assert known(rows, among) == expected
        assert known(rows, pack_names(among) or tuple(among)) == expected


def test_names_that_are_all_known_come_back_as_they_are() -> None:
    rows = NodeRowIndex()
    for name in ("b", "a", "c"):
        rows.append(name)
    among = pack_names(["a", "b"]) or ("a", "b")
    assert rows.known(among)[0] is among
