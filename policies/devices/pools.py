"""The pools of published devices that a node can use.

Of each pool only the slices of the highest generation count. A pool is complete if as many of its
slices are known as each of them states; of an incomplete pool no device may be used. A pool is
invalid if two of its devices have the same name, or if a device consumes a counter that no slice
has.

Source: GatherPools in k8s.io/dynamic-resource-allocation/structured/internal/incubating.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import not_

from policies.devices.changes import changed_keys
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


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """A pool as a node sees it; it equals only itself.

    ``devices`` can be used from the node, in the order of the search; ``elsewhere`` are others
    whose use counts against ``counters``. An unusable pool has no devices: it is incomplete or
    invalid.
    """

    id: PoolId
    devices: tuple[Device, ...] = ()
    elsewhere: tuple[Device, ...] = ()
    counters: tuple[Counters, ...] = ()
    unusable: bool = False


class PublishedPool:
    """All slices of a pool by name, and the rules that may taint its devices.

    ``nodes`` are the names of the nodes that can use it, or None if slices or devices select nodes.
    Nodes that can use the same slices and devices see the same :class:`Pool`.
    """

    def __init__(
        self,
        slices: Iterable[ResourceSlice],
        rules: tuple[DeviceTaintRule, ...],
        gates: frozenset[FeatureGate],
    ) -> None:
        self.slices = tuple(sorted(slices, key=lambda it: it.name))
        self.rules = rules
        names = frozenset(_node_name(each) for each in self.slices)
        self.nodes = None if "" in names else names
        self._of_node: dict[str, list[ResourceSlice]] = {}
        for each in self.slices:
            if _is_usable(each, gates):
                self._of_node.setdefault(_node_name(each), []).append(each)
        self._seen: dict[object, Pool | None] = {}

    def seen_from(self, node: Node) -> Pool | None:
        """Return what ``node`` sees; None if that is nothing, or known to be obsolete."""
        selecting = (each for each in self._of_node.get("", ()) if _is_for(each, node))
        found = (*self._of_node.get(node.name, ()), *selecting)
        if not found:
            return None
        newest = max(each.generation for each in found)
        slices = [each for each in found if each.generation == newest]
        usable = tuple(_are_usable(each, node) for each in slices)
        key = tuple(each.name for each in slices), usable
        if key not in self._seen:
            self._seen[key] = self._pool(slices, [flag for flags in usable for flag in flags])
        return self._seen[key]

    def _pool(self, slices: Sequence[ResourceSlice], usable: Sequence[bool]) -> Pool | None:
        """Return a pool; None if slices for other nodes show that these are obsolete."""
        first, every = slices[0], slices
        if len(slices) != first.count:
            if any(each.generation > first.generation for each in self.slices):
                return None
            every = [each for each in self.slices if each.generation == first.generation]
        if len(every) != first.count:
            return Pool(first.pool, unusable=True)
        counters = tuple(counters for each in every for counters in each.counters)
        listed = [device for each in slices for device in each.devices]
        others = [device for each in every if each not in slices for device in each.devices]
        if not _is_valid(listed, (*listed, *others), counters):
            return Pool(first.pool, unusable=True)
        others += compress(listed, map(not_, usable))
        return Pool(
            first.pool,
            tuple(_tainted(each, first.pool, self.rules) for each in compress(listed, usable)),
            tuple(each for each in others if each.consumes),
            counters,
        )


@dataclass(frozen=True, slots=True)
class PublishedDevices:
    """The pools of all ``slices``, with the taints of ``rules``.

    ``of_node`` are the pools that name their nodes, by node; ``selecting`` those that select nodes.
    """

    gates: frozenset[FeatureGate]
    slices: Mapping[str, ResourceSlice] = field(default_factory=dict)
    rules: Mapping[str, DeviceTaintRule] = field(default_factory=dict)
    by_id: Mapping[PoolId, PublishedPool] = field(default_factory=dict)
    of_node: Mapping[str, frozenset[PoolId]] = field(default_factory=dict)
    selecting: frozenset[PoolId] = frozenset()

    def pools(self, node: Node) -> list[Pool]:
        """Return the pools that ``node`` can use, in the order of the search."""
        ids = sorted((*self.of_node.get(node.name, ()), *self.selecting))
        seen = (self.by_id[each].seen_from(node) for each in ids)
        pools = [pool for pool in seen if pool is not None]
        # From 1.36 on, pools with binding conditions are tried last; this never changes a result.
        return sorted(pools, key=lambda pool: any(each.binds for each in pool.devices))

    def updated(
        self, slices: Mapping[str, ResourceSlice], rules: Mapping[str, DeviceTaintRule]
    ) -> PublishedDevices:
        """Return the same for other slices and rules; unchanged pools are the same objects."""
        if slices is self.slices and rules is self.rules:
            return self
        changed = changed_keys(self.slices, slices)
        stale = {
            each[name].pool for each in (self.slices, slices) for name in changed if name in each
        }
        if rules is not self.rules:
            stale |= {
                pool
                for pool, known in self.by_id.items()
                if known.rules != self._rules_of(pool, rules)
            }
        found: dict[PoolId, list[ResourceSlice]] = {
            pool: [each for each in self.by_id[pool].slices if each.name not in changed]
            for pool in stale & self.by_id.keys()
        }
        for each in (slices[name] for name in changed if name in slices):
            found.setdefault(each.pool, []).append(each)
        fresh = {
            pool: PublishedPool(of_pool, self._rules_of(pool, rules), self.gates)
            for pool, of_pool in found.items()
            if of_pool
        }
        by_id = {**self.by_id, **fresh}
        for pool in stale - fresh.keys():
            del by_id[pool]
        return PublishedDevices(
            self.gates,
            slices,
            rules,
            by_id,
            self._indexed(stale, fresh),
            (self.selecting - stale).union(p for p, it in fresh.items() if it.nodes is None),
        )

    def _rules_of(
        self, pool: PoolId, rules: Mapping[str, DeviceTaintRule]
    ) -> tuple[DeviceTaintRule, ...]:
        if FeatureGate.DRA_DEVICE_TAINT_RULES not in self.gates:
            return ()
        return tuple(each for each in rules.values() if each.selects_pool(pool))

    def _indexed(
        self, stale: Iterable[PoolId], fresh: Mapping[PoolId, PublishedPool]
    ) -> Mapping[str, frozenset[PoolId]]:
        """Return ``of_node`` with the nodes of ``fresh`` instead of those of ``stale`` pools."""
        of_node = dict(self.of_node)
        for pool in stale:
            before, after = self.by_id.get(pool), fresh.get(pool)
            for name in (before and before.nodes) or ():
                of_node[name] -= {pool}
                if not of_node[name]:
                    del of_node[name]
            for name in (after and after.nodes) or ():
                of_node[name] = of_node.get(name, frozenset()) | {pool}
        return of_node


def _node_name(each: ResourceSlice) -> str:
    """Return the name of the node that a slice is for; "" if it selects nodes."""
    return "" if each.nodes is None else each.nodes.name


def _are_usable(each: ResourceSlice, node: Node) -> tuple[bool, ...]:
    """Return for each device of a slice for ``node`` whether the node can use it."""
    if each.nodes is not None:
        return (True,) * len(each.devices)
    return tuple(device.nodes.matches(node.name, node.labels) for device in each.devices)


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


def _tainted(device: Device, pool: PoolId, rules: Sequence[DeviceTaintRule]) -> Device:
    if not rules:
        return device
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
