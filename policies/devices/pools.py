"""The pools of published devices that a node can use.

Of each pool only the slices of the highest generation count. A pool is complete if as many of its
slices are known as each of them states; of an incomplete pool no device may be used. A pool is
invalid if two of its devices have the same name, or if a device consumes a counter that no slice
has.

Source: GatherPools in k8s.io/dynamic-resource-allocation/structured/internal/incubating.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from policies.kubernetes.devices import (
    Counters,
    Device,
    DeviceTaintRule,
    PoolId,
    PoolUse,
    ResourceSlice,
)
from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.snapshot import Node

_PARTITIONABLE = FeatureGate.DRA_PARTITIONABLE_DEVICES


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool as a node sees it.

    ``devices`` can be used from the node, in the order of the search; ``elsewhere`` are others,
    whose use counts against ``counters``. An unusable pool has no devices: it is incomplete or
    invalid.
    """

    id: PoolId
    devices: tuple[Device, ...] = ()
    elsewhere: tuple[Device, ...] = ()
    counters: tuple[Counters, ...] = ()
    unusable: bool = False


class PublishedDevices:
    """All slices, and the taints of rules that apply to their devices."""

    def __init__(
        self, slices: Iterable[ResourceSlice] = (), rules: Iterable[DeviceTaintRule] = ()
    ) -> None:
        self._rules = tuple(rules)
        self._by_pool: dict[PoolId, list[ResourceSlice]] = {}
        self._of_node: dict[str, list[ResourceSlice]] = {}
        self._shared: list[ResourceSlice] = []
        for each in sorted(slices, key=lambda it: it.name):
            self._by_pool.setdefault(each.pool, []).append(each)
            if each.nodes is not None and each.nodes.name:
                self._of_node.setdefault(each.nodes.name, []).append(each)
            else:
                self._shared.append(each)

    def pools(self, node: Node, gates: frozenset[FeatureGate]) -> tuple[Pool, ...]:
        """Return the pools that ``node`` can use, in the order of the search."""
        newest: dict[PoolId, list[ResourceSlice]] = {}
        for each in (*self._of_node.get(node.name, ()), *self._shared):
            if not _is_usable(each, gates) or not _is_for(each, node):
                continue
            known = newest.setdefault(each.pool, [each])
            if each.generation > known[0].generation:
                newest[each.pool] = [each]
            elif each.generation == known[0].generation and each is not known[-1]:
                known.append(each)
        found = (self._pool(slices, node, gates) for _, slices in sorted(newest.items()))
        pools = [pool for pool in found if pool is not None]
        # From 1.36 on, pools with binding conditions are tried last; this never changes a result.
        return tuple(sorted(pools, key=lambda pool: any(each.binds for each in pool.devices)))

    def _pool(
        self, slices: Sequence[ResourceSlice], node: Node, gates: frozenset[FeatureGate]
    ) -> Pool | None:
        """Return a pool; None if slices for other nodes show that these are obsolete."""
        first, every = slices[0], slices
        if len(slices) != first.count:
            published = self._by_pool[first.pool]
            if any(each.generation > first.generation for each in published):
                return None
            every = [each for each in published if each.generation == first.generation]
        if len(every) != first.count:
            return Pool(first.pool, unusable=True)
        counters = tuple(counters for each in every for counters in each.counters)
        listed = [device for each in slices for device in each.devices]
        others = [device for each in every if each not in slices for device in each.devices]
        if not _is_valid(listed, (*listed, *others), counters):
            return Pool(first.pool, unusable=True)
        rules = self._rules if FeatureGate.DRA_DEVICE_TAINT_RULES in gates else ()
        usable: list[Device] = []
        for each in slices:
            for device in each.devices:
                if each.nodes is not None or device.nodes.matches(node.name, node.labels):
                    usable.append(_tainted(device, first.pool, rules))
                else:
                    others.append(device)
        return Pool(first.pool, tuple(usable), tuple(others), counters)


def _is_usable(each: ResourceSlice, gates: frozenset[FeatureGate]) -> bool:
    return _PARTITIONABLE in gates or (each.nodes is not None and not each.counters)


def _is_for(each: ResourceSlice, node: Node) -> bool:
    if each.nodes is not None:
        return each.nodes.matches(node.name, node.labels)
    return any(device.nodes.matches(node.name, node.labels) for device in each.devices)


def _is_valid(
    listed: Sequence[Device], every: Sequence[Device], counters: Sequence[Counters]
) -> bool:
    known: Mapping[str, frozenset[str]] = {
        each.name: frozenset(name for name, _ in each.amounts) for each in counters
    }
    return (
        len({device.name for device in listed}) == len(listed)
        and len(known) == len(counters)
        and all(
            name in known.get(consumed.name, ())
            for device in every
            for consumed in device.consumes
            for name, _ in consumed.amounts
        )
    )


def _tainted(device: Device, pool: PoolId, rules: Iterable[DeviceTaintRule]) -> Device:
    taints = tuple(rule.taint for rule in rules if rule.selects(pool, device.name))
    return replace(device, taints=(*device.taints, *taints)) if taints else device


CounterName = tuple[str, str]


def consumption(device: Device) -> Iterator[tuple[CounterName, int]]:
    """Yield the counters that a device consumes, with the amounts."""
    for consumed in device.consumes:
        for name, amount in consumed.amounts:
            yield (consumed.name, name), amount


def free_counters(pool: Pool, use: PoolUse) -> dict[CounterName, int]:
    """Return what the devices in use leave of the counters of a pool."""
    free = {(each.name, name): n for each in pool.counters for name, n in each.amounts}
    used = use.devices.union(name for name, _ in use.shared)
    for device in (*pool.devices, *pool.elsewhere):
        if device.name in used:
            for name, amount in consumption(device):
                free[name] = free.get(name, 0) - amount
    return free
