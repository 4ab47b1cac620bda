"""The devices of a cluster, prepared for many searches: pools by node, and devices in use.

One state of the storage differs from the one before it in few objects, so each inventory is derived
from the newest one, and shares the pools that have not changed.

A cluster has few kinds of nodes, but thousands of nodes. Two nodes with equal devices, of which
equal ones are in use, have the same result, whatever the names of their pools and devices and the
order of the devices. Only the attributes that the search reads are compared, since others, such as
serial numbers, are different for each device. So a search runs once for each *shape* of a node's
pools.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

from policies.devices.allocations import DevicesInUse
from policies.devices.allocator import Verdict, allocate
from policies.devices.changes import changed_keys
from policies.devices.constraints import find_attribute
from policies.devices.planning import PlannedClaim
from policies.devices.pools import Pool, PublishedDevices
from policies.kubernetes.devices import (
    UNUSED,
    Device,
    DeviceClass,
    PoolId,
    PoolUse,
    classes_by_resource,
)
from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.snapshot import Node
from policies.kubernetes.storage import Same, Storage

_SPARE_NUMBERS: Final = 1_000
"""The numbers of shapes that no node has any more, before all are numbered again."""


class Inventory(NamedTuple):
    """The published devices, and those in use."""

    published: PublishedDevices
    in_use: DevicesInUse

    def use_of(self, pool: Pool) -> PoolUse:
        """Return what is in use of a pool."""
        return self.in_use.uses.get(pool.id, UNUSED)


class PoolShape(NamedTuple):
    """All that a search reads of a pool, and the pool with its devices in a fixed order."""

    shape: object
    pool: Pool


@dataclass(frozen=True, slots=True)
class DeviceSearch:
    """The search for devices for some claims; each shape of a node's pools is searched once."""

    claims: tuple[PlannedClaim, ...]
    attributes: tuple[str, ...]
    inventory: Inventory
    gates: frozenset[FeatureGate]
    _verdicts: dict[object, Verdict]

    def verdict(self, node: Node, changed: Mapping[PoolId, PoolUse]) -> Verdict:
        """Return whether ``node`` has devices for all claims, with the ``changed`` uses."""
        pools = self.inventory.published.pools(node)
        uses = [changed.get(each.id) or self.inventory.use_of(each) for each in pools]
        shapes = [_shape(*each, self.attributes) for each in zip(pools, uses, strict=True)]
        key = tuple(each.shape for each in shapes)
        if key not in self._verdicts:
            ordered = [each.pool for each in shapes]
            self._verdicts[key] = allocate(self.claims, ordered, uses, self.gates)
        return self._verdicts[key]

    def groups(self, nodes: Sequence[Node]) -> array[int]:
        """Return for each node the number of its shape."""
        return _groups(self.gates, self.attributes).of(nodes, self.inventory)


def device_search(
    claims: Sequence[PlannedClaim], storage: Storage, gates: frozenset[FeatureGate]
) -> DeviceSearch:
    """Prepare the search for ``claims`` among the devices of ``storage``."""
    attributes = {name for claim in claims for name in claim.attributes()}
    found = inventory(storage, gates)
    return DeviceSearch(tuple(claims), tuple(sorted(attributes)), found, gates, {})


def inventory(storage: Storage, gates: frozenset[FeatureGate]) -> Inventory:
    """Return the devices of ``storage``."""
    return _inventories(gates).of(storage)


def backing_classes(storage: Storage) -> Mapping[str, DeviceClass]:
    """Return the class behind each extended resource."""
    return _backing(Same(storage.device_classes))


class _Inventories:
    """The newest inventory, from which the next one is derived."""

    def __init__(self, gates: frozenset[FeatureGate]) -> None:
        self._published = PublishedDevices(gates)
        self._in_use = DevicesInUse()

    def of(self, storage: Storage) -> Inventory:
        """Return the inventory of ``storage``."""
        self._published = self._published.updated(storage.slices, storage.taint_rules)
        self._in_use = self._in_use.updated(storage.devices)
        return Inventory(self._published, self._in_use)


class NodeGroups:
    """The shapes of nodes as numbers. Those of nodes that have not changed are kept."""

    def __init__(self, gates: frozenset[FeatureGate], attributes: tuple[str, ...]) -> None:
        self._attributes = attributes
        self._inventory = Inventory(PublishedDevices(gates), DevicesInUse())
        self._nodes: Sequence[Node] = ()
        self._rows: Mapping[str, int] = {}
        self._numbers: dict[object, int] = {}
        self._found = array("q")

    def of(self, nodes: Sequence[Node], inventory: Inventory) -> array[int]:
        """Return the number of each node's shape."""
        if nodes != self._nodes:
            self._follow(nodes)
        rows = self._stale_rows(inventory)
        if len(self._numbers) > _SPARE_NUMBERS + len(nodes):
            self._numbers.clear()
            rows = range(len(nodes))
        self._inventory = inventory
        if rows:
            self._found = self._found[:]  # The earlier array belongs to the caller.
        for row in rows:
            self._found[row] = self._number(nodes[row])
        return self._found

    def _follow(self, nodes: Sequence[Node]) -> None:
        """Number the nodes that differ from the node of their name."""
        before, known = self._nodes, self._found
        self._found = array("q")
        for node in nodes:
            row = self._rows.get(node.name)
            kept = None if row is None or before[row] is not node else known[row]
            self._found.append(self._number(node) if kept is None else kept)
        self._nodes, self._rows = nodes, {node.name: row for row, node in enumerate(nodes)}

    def _number(self, node: Node) -> int:
        shape = tuple(
            _shape(pool, self._inventory.use_of(pool), self._attributes).shape
            for pool in self._inventory.published.pools(node)
        )
        return self._numbers.setdefault(shape, len(self._numbers))

    def _stale_rows(self, inventory: Inventory) -> Collection[int]:
        """Return the rows of the nodes of pools that have changed."""
        before, after = self._inventory.published.by_id, inventory.published.by_id
        changed = changed_keys(before, after)
        changed |= changed_keys(self._inventory.in_use.uses, inventory.in_use.uses)
        stale: set[int] = set()
        for published in (each[pool] for each in (before, after) for pool in changed & each.keys()):
            if published.nodes is None:
                return range(len(self._nodes))
            stale.update(self._rows[name] for name in published.nodes if name in self._rows)
        return stale


@lru_cache(maxsize=4)
def _inventories(gates: frozenset[FeatureGate]) -> _Inventories:
    return _Inventories(gates)


@lru_cache(maxsize=16)
def _groups(gates: frozenset[FeatureGate], attributes: tuple[str, ...]) -> NodeGroups:
    return NodeGroups(gates, attributes)


@lru_cache(maxsize=4)
def _backing(classes: Same[Mapping[str, DeviceClass]]) -> Mapping[str, DeviceClass]:
    return classes_by_resource(classes.value.values())


@lru_cache(maxsize=1 << 16)
def _shape(pool: Pool, use: PoolUse, attributes: tuple[str, ...]) -> PoolShape:
    driver, consumed = pool.id.driver, dict(use.shared)
    used = use.devices | consumed.keys()
    contents = [
        (_content(each, driver, attributes), each.name in use.devices, consumed.get(each.name))
        for each in pool.devices
    ]
    texts = {each: repr(each) for each in set(contents)}
    if len(texts) > 1:
        order = sorted(range(len(contents)), key=lambda place: texts[contents[place]])
        contents = [contents[place] for place in order]
        pool = replace(pool, devices=tuple(pool.devices[place] for place in order))
    elsewhere = tuple(each.consumes for each in pool.elsewhere if each.name in used)
    shape = driver, tuple(contents), elsewhere, pool.counters, pool.unusable
    return PoolShape(shape, pool)


def _content(device: Device, driver: str, attributes: Sequence[str]) -> tuple[object, ...]:
    """Return all that a search reads of a device."""
    read = tuple(find_attribute(device, driver, name) for name in attributes)
    capacity = tuple(sorted(device.capacity.items())) if device.capacity else ()
    unsupported = device.unsupported and f"{device.unsupported} of {device.name}"
    return read, capacity, device.taints, device.consumes, device.shared, device.binds, unsupported
