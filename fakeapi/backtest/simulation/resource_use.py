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
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fakeapi.backtest.statistics import Amounts
from policies.kubernetes.snapshot import Resources

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


def amounts_of(resources: Resources) -> Amounts:
    """Return the amounts of resources by their names in the API."""
    known = {
        "cpu": resources.milli_cpu,
        "memory": resources.memory,
        "ephemeral-storage": resources.ephemeral_storage,
        **resources.scalars,
    }
    return {name: amount for name, amount in known.items() if amount}


class ResourceUse:
    """The use of nodes from ``start_ns`` on; ``duration_ns`` is how long it is expected to last."""

    def __init__(self, start_ns: int, duration_ns: int) -> None:
        self._nodes: dict[str, Amounts] = {}
        self._free: dict[str, Amounts] = {}
        self._offered: Amounts = {}
        self._taken: Amounts = {}
        self._capacity: Amounts = {}
        self._allocated: Amounts = {}
        self._fragmented: Amounts = {}
        self._shapes: Counter[tuple[tuple[str, int], ...]] = Counter()
        self._changed_ns = self._sampled_ns = start_ns
        self._interval_ns = max(_MIN_INTERVAL_NS, duration_ns // SAMPLES)
        self._sampled = _FreeAmounts()

    def set_node(self, name: str, allocatable: Mapping[str, int], now_ns: int) -> None:
        """Add a node, or change what it has; a node without anything is gone."""
        amounts, before = measured(allocatable), self._nodes.get(name, {})
        if amounts == before:
            return
        self.advance(now_ns)
        self._nodes[name] = amounts
        free = self._free.setdefault(name, {})
        for sign, changed in ((-1, before), (1, amounts)):
            _add(self._offered, changed, sign)
            _add(free, changed, sign)
        self._sampled.changed[name] = None

    def add_shape(self, requests: Mapping[str, int], pods: int) -> None:
        """Count the requests of submitted pods, as what may be placed later."""
        self._shapes[tuple(sorted(measured(requests).items()))] += pods

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
        _add(self._capacity, self._offered, seconds)
        _add(self._allocated, self._taken, seconds)
        if now_ns - self._sampled_ns >= self._interval_ns:
            seconds = now_ns // _SECOND_NS - self._sampled_ns // _SECOND_NS
            self._sampled_ns = now_ns
            _add(self._fragmented, self._unusable(), seconds)

    def capacity(self) -> Amounts:
        """Return the resource-seconds of all nodes until the last change."""
        return self._requested(self._capacity)

    def allocated(self) -> Amounts:
        """Return the resource-seconds that pods had allocated."""
        return self._requested(self._allocated)

    def fragmented(self) -> Amounts:
        """Return the free resource-seconds on nodes that were too small."""
        return self._requested(self._fragmented)

    def _requested(self, amounts: Amounts) -> Amounts:
        """Return the amounts of resources that any pod has requested."""
        requested = {name for shape in self._shapes for name, amount in shape if amount}
        return {name: amount for name, amount in amounts.items() if name in requested}

    def _change(self, node: str, requests: Mapping[str, int], now_ns: int, sign: int) -> None:
        self.advance(now_ns)
        if node in self._nodes:
            amounts = measured(requests)
            _add(self._taken, amounts, sign)
            _add(self._free[node], amounts, -sign)
            self._sampled.changed[node] = None

    def _unusable(self) -> Amounts:
        """Return the free amounts that a pod drawn from the workload cannot use now."""
        shapes = self._shapes.most_common(SHAPES)
        total = sum(count for _, count in shapes)
        if not total:
            return {}
        names = sorted(self._offered)
        free = self._sampled.update(names, self._free)
        unusable = np.zeros(free.shape[1], np.int64)
        for shape, count in shapes:
            wanted = dict(shape)
            least = np.array([[wanted.get(name, 0)] for name in names], np.int64)
            unusable += count * (free < least).any(axis=0)
        # Integers, so that every machine has the same result.
        return dict(zip(names, (free @ unusable // total).tolist(), strict=True))


class _FreeAmounts:
    """What is free on each node at the last sample, as an array; ``changed`` are nodes since."""

    def __init__(self) -> None:
        self.changed: dict[str, None] = {}
        self._names: Sequence[str] = ()
        self._columns: dict[str, int] = {}
        self._amounts = np.zeros((0, 0), np.int64)

    def update(
        self, names: Sequence[str], free_by_node: Mapping[str, Amounts]
    ) -> NDArray[np.int64]:
        """Return the free amounts: a row for each name, a column for each node."""
        if names != self._names or len(free_by_node) != len(self._columns):
            self._names = names
            self._columns = {node: column for column, node in enumerate(free_by_node)}
            self._amounts = np.zeros((len(names), len(free_by_node)), np.int64)
            self.changed = dict.fromkeys(free_by_node)
        for node in self.changed:
            free = free_by_node[node]
            amounts = [max(0, free.get(name, 0)) for name in names]
            self._amounts[:, self._columns[node]] = amounts
        self.changed.clear()
        return self._amounts


def _add(total: Amounts, amounts: Mapping[str, int], by: int) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount * by
