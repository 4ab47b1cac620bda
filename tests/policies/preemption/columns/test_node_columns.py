"""Columns of node properties, and rows by node name."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from policies.kubernetes.packed_names import pack_names
from policies.kubernetes.snapshot import Node, Resources
from policies.preemption.columns.node_columns import (
    MAX_AMOUNT,
    NodeColumns,
    NodeRowIndex,
    clamp_amount,
    is_regular,
)
from tests.builders import amounts, node

GPU, NIC = "example.com/gpu", "example.com/nic"


def columns(*nodes: Node) -> NodeColumns:
    made = NodeColumns()
    for each in nodes:
        made.append(each)
    return made


def values(made: NodeColumns, key: str) -> list[str | None]:
    column = made.labels(key)
    return [column.values[code] for code in column.rows().tolist()]


def taints(made: NodeColumns) -> list[list[str]]:
    return [[each.key for each in made.taints.values[code]] for code in made.taints.rows().tolist()]


def in_zone(name: str, zone: str) -> Node:
    return node(name, labels={"zone": zone})


# Labels


def test_a_label_column_is_built_at_its_first_use() -> None:
    made = columns(in_zone("n1", "a"), node("n2"), in_zone("n3", "b"))
    assert values(made, "zone") == ["a", None, "b"]
    assert values(made, "rack") == [None] * 3


def test_a_label_column_follows_changes_of_nodes() -> None:
    made = columns(in_zone("n1", "a"), in_zone("n2", "b"))
    assert values(made, "zone") == ["a", "b"]
    made.append(in_zone("n3", "c"))
    made.set(0, in_zone("n1", "d"))
    assert values(made, "zone") == ["d", "b", "c"]
    made.drop(0)
    assert values(made, "zone") == ["c", "b"]
    made.drop(1)
    made.drop(0)
    assert values(made, "zone") == []


def test_a_label_column_built_after_deletions_has_the_current_rows() -> None:
    made = columns(in_zone("n1", "a"), in_zone("n2", "b"), in_zone("n3", "c"))
    made.drop(0)
    assert values(made, "zone") == ["c", "b"]


def test_a_limited_number_of_label_columns_is_kept() -> None:
    made = columns(in_zone("n1", "a"), node("n2", labels={"key-299": "x"}))
    for count in range(300):
        assert values(made, f"key-{count}") == [None, "x" if count == 299 else None]
    made.set(0, in_zone("n1", "b"))
    assert values(made, "key-0") == [None, None]
    assert values(made, "zone") == ["b", None]
    assert len(made._labels) <= 256


# Rows


def test_taints_and_cordons_move_with_their_node() -> None:
    made = columns(
        node("n1", taints=["a:NoSchedule"]), node("n2"), node("n3", taints=["c:NoSchedule"])
    )
    made.set(1, node("n2", unschedulable=True))
    assert taints(made) == [["a"], [], ["c"]]
    assert made.unschedulable[:3].tolist() == [False, True, False]
    made.drop(0)
    assert taints(made) == [["c"], []]
    assert made.unschedulable[:2].tolist() == [False, True]


def test_amounts_move_with_their_node() -> None:
    made = columns(*(node(f"n{n}", cpu=str(n), pods=n) for n in range(3)))
    for row in range(3):
        made.set_requested(row, amounts(cpu=str(10 * row)))
    made.drop(0)
    assert made.allocatable[0, :2].tolist() == [2000, 1000]
    assert made.requested[0, :2].tolist() == [20_000, 10_000]
    assert made.allowed_pods[:2].tolist() == [2, 1]


def test_a_reused_row_has_only_the_new_nodes_properties() -> None:
    first = node("n1", cpu="7", pods=9, unschedulable=True, others={GPU: "4"})
    made = columns(first)
    made.add_resource(GPU)
    made.drop(0)
    made.append(node("n2", cpu="1", pods=2))
    assert made.allocatable[made.resources[GPU], 0] == 0
    assert (made.allocatable[0, 0], made.allowed_pods[0]) == (1000, 2)
    assert not made.unschedulable[0]


def test_many_nodes_have_their_rows() -> None:
    made = columns(*(node(f"n{n}", pods=n, unschedulable=n % 2 == 1) for n in range(100)))
    assert made.allowed_pods[:100].tolist() == list(range(100))
    assert made.unschedulable[:100].tolist() == [n % 2 == 1 for n in range(100)]


# Resources


def test_a_resource_that_is_added_late_has_every_nodes_amount() -> None:
    made = columns(node("n1", others={GPU: "4"}), node("n2"), node("n3", others={GPU: "1"}))
    made.drop(0)
    made.add_resource(GPU)
    assert made.allocatable[made.resources[GPU], :2].tolist() == [1, 0]
    made.append(node("n4", others={GPU: "8"}))
    made.set(0, node("n3", others={GPU: "2"}))
    assert made.allocatable[made.resources[GPU], :3].tolist() == [2, 0, 8]
    assert made.amounts(amounts(cpu="1", others={GPU: "3", NIC: "1"})) == [1000, 0, 0, 3]


def test_dropped_resources_free_their_columns() -> None:
    made = columns(node("n1", others={GPU: "4", NIC: "2"}))
    made.add_resource(GPU)
    made.add_resource(NIC)
    made.set_requested(0, amounts(others={NIC: "1"}))
    made.keep_resources([0, 1, 2, 4])
    assert made.resources == {"cpu": 0, "memory": 1, "ephemeral-storage": 2, NIC: 3}
    assert (made.allocatable[3, 0], made.requested[3, 0]) == (2, 1)
    made.set(0, node("n1", others={GPU: "4", NIC: "5"}))
    assert made.allocatable[3, 0] == 5
    made.add_resource(GPU)
    assert made.allocatable[made.resources[GPU], 0] == 4


@pytest.mark.parametrize(
    ("amount", "cut"),
    [
        (0, 0),
        (-1, -1),
        (MAX_AMOUNT, MAX_AMOUNT),
        (MAX_AMOUNT + 1, MAX_AMOUNT),
        (2**80, MAX_AMOUNT),
        (-(2**80), -MAX_AMOUNT),
    ],
)
def test_amounts_are_clamped_so_that_sums_fit(amount: int, cut: int) -> None:
    assert clamp_amount(amount) == cut
    made = columns(structs.replace(node(), allowed_pods=amount))
    made.set_requested(0, Resources(memory=amount))
    assert (made.requested[1, 0], made.allowed_pods[0]) == (cut, cut)


@pytest.mark.parametrize(
    ("amount", "cut"),
    [(2**63 - 1, 2**63 - 1), (2**63, 2**63 - 1), (-(2**70), -MAX_AMOUNT)],
)
def test_what_a_node_has_is_clamped_to_64_bits(amount: int, cut: int) -> None:
    huge = Resources(memory=amount, scalars={GPU: amount})
    made = columns(structs.replace(node(), allocatable=huge))
    made.add_resource(GPU)
    assert (made.allocatable[1, 0], made.allocatable[3, 0]) == (cut, cut)


@pytest.mark.parametrize(
    ("resources", "regular"),
    [
        (Resources(), True),
        (Resources(MAX_AMOUNT, MAX_AMOUNT, MAX_AMOUNT, {GPU: MAX_AMOUNT}), True),
        (Resources(memory=MAX_AMOUNT + 1), False),
        (Resources(milli_cpu=-1), False),
        (Resources(scalars={GPU: MAX_AMOUNT + 1}), False),
        (Resources(scalars={GPU: -1, NIC: 1}), False),
    ],
)
def test_regular_amounts_need_no_clamping(resources: Resources, *, regular: bool) -> None:
    assert is_regular(resources) is regular


# Rows


NAMES = ("a", "b", "node-1", "node-2", "nöd", 'quo"ted')
plain = st.sampled_from(NAMES[:4])
asked = st.lists(plain, unique=True) | st.lists(st.sampled_from([*NAMES, "unknown"]))
changes = st.lists(plain | st.sampled_from(NAMES), max_size=4)


def known(rows: NodeRowIndex, among: Collection[str]) -> tuple[list[str], list[int]]:
    names, numbers = rows.known(among)
    return list(names), numbers.tolist()


@given(st.lists(st.tuples(changes, asked), max_size=5))
def test_names_are_found_packed_or_not_while_rows_change(
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


def test_known_names_are_returned_as_the_same_object() -> None:
    rows = NodeRowIndex()
    for name in ("b", "a", "c"):
        rows.append(name)
    among = pack_names(["a", "b"]) or ("a", "b")
    assert rows.known(among)[0] is among
