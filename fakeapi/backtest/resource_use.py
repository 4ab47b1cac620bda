"""How the resources of simulated nodes are used over time: allocated, free and fragmented.

A free resource on a node counts as fragmented to the extent that a pod drawn from the workload does
not fit on the node: with half of the pods too large for what is left there, half of it. Nodes are
looked at in regular samples, at most SAMPLES in a simulation, since no pod needs to come or go
for fragmentation to last.

Source of the measure: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
Fragmentation Gradient Descent" (USENIX ATC '23).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from fakeapi.backtest.statistics import Amounts
from fakeapi.backtest.traces.trace import TraceNode

SAMPLES: Final = 500
SHAPES: Final = 32
"""How many different requests are compared with each node: the most frequent ones."""
PODS: Final = "pods"

_MIB: Final = 2**20
_SECOND_NS: Final = 10**9
_IN_MEBIBYTES: Final = ("memory", "ephemeral-storage")
_MIN_INTERVAL_NS: Final = 3600 * _SECOND_NS


def measured(requests: Mapping[str, int]) -> Amounts:
    """Return amounts in the units of the statistics: mebibytes for bytes; pods do not count."""
    return {
        name: -(-amount // _MIB) if name in _IN_MEBIBYTES else amount
        for name, amount in requests.items()
        if name != PODS
    }


class ResourceUse:
    """The use of nodes from ``start_ns`` on; ``duration_ns`` is how long it is expected to last."""

    def __init__(self, nodes: Iterable[TraceNode], start_ns: int, duration_ns: int) -> None:
        known = [(node.name, measured(node.allocatable)) for node in nodes]
        self._rows = {name: row for row, (name, _) in enumerate(known)}
        self._names = sorted({name for _, amounts in known for name in amounts})
        self._columns = {name: column for column, name in enumerate(self._names)}
        self._free = np.zeros((len(known), len(self._names)), np.int64)
        for row, (_, amounts) in enumerate(known):
            self._free[row] = self._vector(amounts)
        self._capacity = self._free.sum(axis=0)
        self._allocated = np.zeros_like(self._capacity)
        self._totals = {kind: [0] * len(self._names) for kind in ("allocated", "fragmented")}
        self._shapes: Counter[tuple[int, ...]] = Counter()
        self._start_ns = self._changed_ns = self._sampled_ns = start_ns
        self._interval_ns = max(_MIN_INTERVAL_NS, duration_ns // SAMPLES)

    def add_shape(self, requests: Mapping[str, int], pods: int) -> None:
        """Count the requests of submitted pods, as what may be placed later."""
        self._shapes[tuple(int(amount) for amount in self._vector(measured(requests)))] += pods

    def allocate(self, node: str, requests: Mapping[str, int], now_ns: int) -> None:
        """Allocate the requests of a pod on a node."""
        self._change(node, requests, now_ns, 1)

    def release(self, node: str, requests: Mapping[str, int], now_ns: int) -> None:
        """Release the requests of a pod that has ended."""
        self._change(node, requests, now_ns, -1)

    def advance(self, now_ns: int) -> None:
        """Account for the time until now."""
        seconds = now_ns // _SECOND_NS - self._changed_ns // _SECOND_NS
        self._changed_ns = now_ns
        _add(self._totals["allocated"], self._allocated, seconds)
        if now_ns - self._sampled_ns >= self._interval_ns:
            seconds = now_ns // _SECOND_NS - self._sampled_ns // _SECOND_NS
            self._sampled_ns = now_ns
            _add(self._totals["fragmented"], self._fragmented(), seconds)

    def capacity(self) -> Amounts:
        """Return the resource-seconds of all nodes until the last change."""
        seconds = self._changed_ns // _SECOND_NS - self._start_ns // _SECOND_NS
        return {
            name: int(amount) * seconds
            for name, amount in zip(self._names, self._capacity, strict=True)
        }

    def allocated(self) -> Amounts:
        """Return the resource-seconds that pods had allocated."""
        return dict(zip(self._names, self._totals["allocated"], strict=True))

    def fragmented(self) -> Amounts:
        """Return the free resource-seconds on nodes that were too small."""
        return dict(zip(self._names, self._totals["fragmented"], strict=True))

    def _change(self, node: str, requests: Mapping[str, int], now_ns: int, sign: int) -> None:
        self.advance(now_ns)
        amounts = sign * self._vector(measured(requests))
        self._allocated += amounts
        self._free[self._rows[node]] -= amounts

    def _fragmented(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the free amounts that a pod drawn from the workload cannot use now."""
        shapes = self._shapes.most_common(SHAPES)
        total = sum(count for _, count in shapes)
        if not total:
            return np.zeros_like(self._capacity)
        free = np.maximum(self._free, 0)
        unusable = np.zeros(len(free), np.float64)
        for shape, count in shapes:
            unusable += count / total * (free < np.array(shape, np.int64)).any(axis=1)
        wasted: np.ndarray[tuple[int], np.dtype[np.int64]] = np.rint(unusable @ free).astype(
            np.int64
        )
        return wasted

    def _vector(self, amounts: Mapping[str, int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        vector = np.zeros(len(self._names), np.int64)
        for name, amount in amounts.items():
            column = self._columns.get(name)
            if column is not None:
                vector[column] = amount
        return vector


def _add(total: list[int], amounts: np.ndarray[tuple[int], np.dtype[np.int64]], by: int) -> None:
    for column, amount in enumerate(amounts.tolist()):
        total[column] += amount * by
