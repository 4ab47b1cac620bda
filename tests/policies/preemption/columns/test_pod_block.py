"""The block of cells: pods keep their order while it grows, shrinks and moves nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.preemption.columns.pod_block import EMPTY_PRIORITY, FIRST_RESOURCE, PRIORITY, PodBlock

CHANNELS = FIRST_RESOURCE


def row(value: int) -> list[int]:
    return [value, *[value + channel for channel in range(1, CHANNELS)]]


def cells(*nodes: list[int]) -> PodBlock:
    made = PodBlock(CHANNELS)
    for number, values in enumerate(nodes):
        made.append_node()
        made.fill(number, [row(value) for value in values])
    return made


def contents(made: PodBlock) -> list[list[int]]:
    """Return each node's pods, once every other cell has been seen to be empty."""
    found = []
    for node in range(made.block.shape[2]):
        count = int(made.counts[node])
        rows = made.block[:, :count, node].T.tolist()
        assert rows == [row(each[0])[:CHANNELS] + [0] * (len(each) - CHANNELS) for each in rows]
        assert (made.block[PRIORITY, count:, node] == EMPTY_PRIORITY).all()
        assert not made.block[PRIORITY + 1 :, count:, node].any()
        found.append([each[0] for each in rows])
    assert not any(found[made.width :])
    return found[: made.width]


def test_a_new_block_is_empty() -> None:
    made = PodBlock(CHANNELS)
    assert contents(made) == []
    assert made.depth() == 0
    assert made.used().shape == (CHANNELS, 0, 0)


def test_the_used_part_is_as_deep_as_the_fullest_node() -> None:
    made = cells([1, 2, 3], [], [4])
    assert made.used().shape == (CHANNELS, 3, 3)
    assert made.used_counts().tolist() == [3, 0, 1]
    assert made.used()[PRIORITY].T.tolist() == [
        [1, 2, 3],
        [EMPTY_PRIORITY] * 3,
        [4, EMPTY_PRIORITY, EMPTY_PRIORITY],
    ]


@pytest.mark.parametrize(("place", "expected"), [(0, [9, 1, 2]), (1, [1, 9, 2]), (2, [1, 2, 9])])
def test_an_added_pod_moves_those_below_it(place: int, expected: list[int]) -> None:
    made = cells([1, 2], [5, 6])
    made.insert(0, place, row(9))
    assert contents(made) == [expected, [5, 6]]


@pytest.mark.parametrize(("place", "expected"), [(0, [2, 3]), (1, [1, 3]), (2, [1, 2])])
def test_a_removed_pod_moves_those_below_it_up(place: int, expected: list[int]) -> None:
    made = cells([1, 2, 3], [5, 6])
    made.remove(0, place)
    assert contents(made) == [expected, [5, 6]]


def test_many_nodes_make_it_wider() -> None:
    made = cells(*([number] for number in range(100)))
    assert contents(made) == [[number] for number in range(100)]


def test_depths_are_an_odd_number_of_cache_lines_apart() -> None:
    for count in (17, 100, 5_000):
        made = cells(*([] for _ in range(count)))
        assert made.block.strides[1] % 64 == 0
        assert made.block.strides[1] // 64 % 2 == 1


def test_many_pods_make_it_deeper_one_by_one_or_all_at_once() -> None:
    made = cells([], list(range(100)))
    for value in range(100):
        made.insert(0, value, row(value))
    assert contents(made) == [list(range(100))] * 2


def test_a_new_channel_is_zero() -> None:
    made = cells([1, 2], [3])
    made.add_channel()
    assert made.used().shape == (CHANNELS + 1, 2, 2)
    assert contents(made) == [[1, 2], [3]]


def test_channels_that_are_kept_move_together() -> None:
    made = cells([10, 20])
    made.keep_channels([0, 3])
    assert made.used()[:, :, 0].tolist() == [[10, 20], [13, 23]]


def test_the_block_shrinks_when_a_deep_node_is_emptied() -> None:
    made = cells([1, 2], list(range(200)))
    for place in range(199, -1, -1):
        made.remove(1, place)
    assert made.block.shape[1] == PodBlock(CHANNELS).block.shape[1]
    assert contents(made) == [[1, 2], []]


def test_the_block_shrinks_when_a_deep_node_is_dropped() -> None:
    made = cells(list(range(200)), [1, 2], [3])
    made.drop_node(0)
    assert made.block.shape[1] == PodBlock(CHANNELS).block.shape[1]
    assert contents(made) == [[3], [1, 2]]


@pytest.mark.parametrize("deep", [32, 64, 200])
@pytest.mark.parametrize("needed", [15, 16, 17, 25, 32, 33, 64, 65, 100, 129])
def test_the_block_stays_as_deep_as_other_nodes_need(deep: int, needed: int) -> None:
    made = cells(list(range(deep)), list(range(needed)))
    made.drop_node(0)
    assert contents(made) == [list(range(needed))]


def test_the_last_node_moves_into_the_place_of_one_that_is_dropped() -> None:
    made = cells([1, 2, 3], [4], [5, 6])
    made.drop_node(0)
    assert contents(made) == [[5, 6], [4]]
    made.drop_node(1)
    assert contents(made) == [[5, 6]]
    made.drop_node(0)
    assert contents(made) == []
    made.append_node()
    assert contents(made) == [[]]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 200), st.integers(0, 60))))
def test_any_history_of_pods_and_nodes(changes: list[tuple[int, int, int]]) -> None:
    made, expected = PodBlock(CHANNELS), list[list[int]]()
    for kind, value, place in changes:
        node = place % max(len(expected), 1)
        if kind == 0 or not expected:
            made.append_node()
            expected.append([])
        elif kind == 1:
            made.drop_node(node)
            expected[node] = expected[-1]
            expected.pop()
        elif kind == 2 and not expected[node]:
            expected[node] = list(range(value % 70))
            made.fill(node, [row(each) for each in expected[node]])
        elif kind == 3 and expected[node]:
            for _ in range(value % len(expected[node]) + 1):
                del expected[node][value % len(expected[node])]
                made.remove(node, value % (len(expected[node]) + 1))
        else:
            depth = value % (len(expected[node]) + 1)
            made.insert(node, depth, row(value))
            expected[node].insert(depth, value)
        assert contents(made) == expected
