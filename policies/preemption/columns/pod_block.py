"""Pods as a block of integers: channels by depth by nodes.

A cell is one pod's value of one channel. Along the depth, a node's pods are in the order in which
the policy reprieves them. So a dry run processes one depth of all nodes at once, and the pods of
one depth are adjacent in memory. Adding or removing a pod moves the later ones by one, on its node
only. Depth and width grow by doubling, and the depth shrinks again when nodes have fewer pods.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policies.preemption.columns.encoded_column import Ints

Block = NDArray[np.int64]

PRIORITY, START_TIME, CLASS, TRAITS, FLAGS, FIRST_RESOURCE = range(6)
"""Channels; those from FIRST_RESOURCE on are the pod's requests, one channel for each resource."""

EMPTY_PRIORITY = 2**63 - 1
"""The priority of an empty cell: never below a preemptor's."""

_MIN_DEPTH, _MIN_WIDTH = 16, 16


class PodBlock:
    """``block`` is (channels, depth, width) int64; a node uses its first ``counts[node]`` cells."""

    def __init__(self, channels: int) -> None:
        self.block = _empty(channels, _MIN_DEPTH, _MIN_WIDTH)
        self.counts = np.zeros(_MIN_WIDTH, np.int64)
        self.width = 0

    def used(self) -> Block:
        """Return the block without unused depth and width, as a view."""
        return self.block[:, : self.depth(), : self.width]

    def depth(self) -> int:
        """Return the number of pods on the node with the most."""
        return int(self.counts[: self.width].max(initial=0))

    def used_counts(self) -> Ints:
        """Return the number of pods on each node, as a view."""
        return self.counts[: self.width]

    def append_node(self) -> None:
        """Add an empty node at the end."""
        if self.width == len(self.counts):
            # An odd number of cache lines: the cells of a node must not map to few cache sets.
            self._resize(self.block.shape[1], 2 * self.width + 8)
        self.width += 1

    def drop_node(self, node: int) -> None:
        """Remove a node; the last one moves to its index."""
        self.width -= 1
        last = self.width
        self.block[:, :, node] = self.block[:, :, last]
        self.counts[node] = self.counts[last]
        self._clear(0, int(self.counts[last]), last)
        self.counts[last] = 0
        self._shrink()

    def add_channel(self) -> None:
        """Add a channel of zeros."""
        self.block = np.concatenate([self.block, np.zeros_like(self.block[:1])])

    def keep_channels(self, channels: Sequence[int]) -> None:
        """Drop all channels but these, which are renumbered without gaps."""
        self.block = self.block[list(channels)]

    def fill(self, node: int, rows: Sequence[Sequence[int]]) -> None:
        """Write the pods of an empty node in order, as one row of all channels each."""
        count = len(rows)
        while count > self.block.shape[1]:
            self._resize(2 * self.block.shape[1], self.block.shape[2])
        if rows:
            self.block[:, :count, node] = np.array(rows, np.int64).T
        self.counts[node] = count

    def insert(self, node: int, place: int, row: Sequence[int]) -> None:
        """Insert a pod at ``place`` of a node."""
        count = self.counts.item(node)
        if count == self.block.shape[1]:
            self._resize(2 * count, self.block.shape[2])
        self.block[:, place + 1 : count + 1, node] = self.block[:, place:count, node]
        self.block[:, place, node] = row
        self.counts[node] = count + 1

    def write(self, node: int, place: int, row: Sequence[int]) -> None:
        """Replace the pod at ``place`` of a node."""
        self.block[:, place, node] = row

    def remove(self, node: int, place: int) -> None:
        """Remove the pod at ``place`` of a node."""
        left = self.counts.item(node) - 1
        if left + 1 < self.block.shape[1]:  # an empty cell follows, and moves up as well
            self.block[:, place : left + 1, node] = self.block[:, place + 1 : left + 2, node]
        else:
            self.block[:, place:left, node] = self.block[:, place + 1 :, node]
            self._clear(left, left + 1, node)
        self.counts[node] = left
        if left == self.block.shape[1] // 4:
            self._shrink()

    def _clear(self, start: int, stop: int, node: int) -> None:
        self.block[:, start:stop, node] = 0
        self.block[PRIORITY, start:stop, node] = EMPTY_PRIORITY

    def _shrink(self) -> None:
        depth, needed = self.block.shape[1], self.depth()
        while depth > _MIN_DEPTH and needed <= depth // 4:
            depth //= 2
        if depth < self.block.shape[1]:
            self._resize(depth, self.block.shape[2])

    def _resize(self, depth: int, width: int) -> None:
        block = _empty(self.block.shape[0], depth, width)
        common = (slice(None), slice(0, min(depth, self.block.shape[1])), slice(0, self.width))
        block[common] = self.block[common]
        self.block = block
        self.counts = np.concatenate([self.counts, np.zeros(width - len(self.counts), np.int64)])


def _empty(channels: int, depth: int, width: int) -> Block:
    block = np.zeros((channels, depth, width), np.int64)
    block[PRIORITY] = EMPTY_PRIORITY
    return block
