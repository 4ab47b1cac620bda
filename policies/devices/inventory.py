"""The devices of a cluster, prepared for many searches: pools by node, and devices in use.

A cluster has few kinds of nodes, but thousands of nodes. Two nodes with equal devices of which the
same ones are in use have the same result, whatever the names of their pools. Only the attributes
that the search reads are compared, since others, such as serial numbers, are different for each
device. So a search runs once for each *shape* of a node's pools.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from policies.devices.allocator import Verdict, allocate
from policies.devices.constraints import find_attribute
from policies.devices.planning import PlannedClaim
from policies.devices.pools import Pool, PublishedDevices
from policies.kubernetes.devices import (
    UNUSED,
    Device,
    DeviceClass,
    DeviceTaintRule,
    PoolId,
    PoolUse,
    ResourceSlice,
    classes_by_resource,
    pool_uses,
)
from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.snapshot import Node
from policies.kubernetes.storage import ResourceClaim, Storage

T = TypeVar("T")


class Same(Generic[T]):
    """A cache key that compares a mapping by identity: a mapping of the storage never changes."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value


class NodePools(NamedTuple):
    """The pools of a node, and the number of their shape."""

    shape: int
    pools: tuple[Pool, ...]
    ids: tuple[PoolId, ...]


class Shapes:
    """The shapes of all nodes' pools, by the attributes that a search reads."""

    def __init__(
        self,
        published: PublishedDevices,
        attributes: frozenset[str],
        gates: frozenset[FeatureGate],
    ) -> None:
        self._published, self._gates = published, gates
        self._attributes = sorted(attributes)
        self._numbers: dict[object, int] = {}
        self._by_node: dict[str, tuple[Node, NodePools]] = {}
        self._grouped: tuple[Mapping[PoolId, PoolUse], Sequence[Node], array[int]] | None = None

    def of(self, node: Node) -> NodePools:
        """Return the pools of ``node``."""
        known = self._by_node.get(node.name)
        if known is not None and known[0] is node:
            return known[1]
        pools = self._published.pools(node, self._gates)
        content = tuple(self._content(pool) for pool in pools)
        number = self._numbers.setdefault(content, len(self._numbers))
        found = NodePools(number, pools, tuple(pool.id for pool in pools))
        self._by_node[node.name] = (node, found)
        return found

    def groups(self, nodes: Sequence[Node], uses: Mapping[PoolId, PoolUse]) -> array[int]:
        """Return for each node the number of its group: all of a group have the same result."""
        known = self._grouped
        if known is None or known[0] is not uses or known[1] != nodes:
            numbers: dict[object, int] = {}
            found = array("q")
            for node in nodes:
                shape, _, ids = self.of(node)
                key = shape, *[uses.get(each, UNUSED) for each in ids]
                found.append(numbers.setdefault(key, len(numbers)))
            known = self._grouped = uses, nodes, found
        return known[2]

    def _content(self, pool: Pool) -> object:
        driver = pool.id.driver
        devices = tuple(self._of_device(each, driver) for each in pool.devices)
        others = tuple((each.name, each.consumes) for each in pool.elsewhere if each.consumes)
        return driver, devices, others, pool.counters, pool.unusable

    def _of_device(self, device: Device, driver: str) -> object:
        read = tuple(find_attribute(device, driver, name) for name in self._attributes)
        capacity = tuple(sorted(device.capacity.items()))
        rest = device.taints, device.consumes, device.shared, device.binds, device.unsupported
        return device.name, read, capacity, rest


@dataclass(frozen=True, slots=True)
class DeviceSearch:
    """The search for devices for some claims; each shape of pools is searched once."""

    claims: tuple[PlannedClaim, ...]
    shapes: Shapes
    uses: Mapping[PoolId, PoolUse]
    gates: frozenset[FeatureGate]
    _verdicts: dict[tuple[int, tuple[PoolUse, ...]], Verdict]

    def verdict(self, node: Node, changed: Mapping[PoolId, PoolUse]) -> Verdict:
        """Return whether ``node`` has devices for all claims, with the ``changed`` uses."""
        found = self.shapes.of(node)
        uses = tuple([changed.get(each) or self.uses.get(each, UNUSED) for each in found.ids])
        key = found.shape, uses
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._verdicts[key] = allocate(self.claims, found.pools, uses, self.gates)
        return verdict

    def groups(self, nodes: Sequence[Node]) -> array[int]:
        """See :meth:`Shapes.groups`."""
        return self.shapes.groups(nodes, self.uses)


def device_search(
    claims: Sequence[PlannedClaim], storage: Storage, gates: frozenset[FeatureGate]
) -> DeviceSearch:
    """Prepare the search for ``claims`` among the devices of ``storage``."""
    attributes = frozenset(name for claim in claims for name in claim.attributes())
    published = Same(storage.slices), Same(storage.taint_rules)
    shapes = _shapes(*published, attributes, gates)
    return DeviceSearch(tuple(claims), shapes, _uses(Same(storage.devices)), gates, {})


def backing_classes(storage: Storage) -> Mapping[str, DeviceClass]:
    """Return the class behind each extended resource."""
    return _backing(Same(storage.device_classes))


@lru_cache(maxsize=16)
def _shapes(
    slices: Same[Mapping[str, ResourceSlice]],
    rules: Same[Mapping[str, DeviceTaintRule]],
    attributes: frozenset[str],
    gates: frozenset[FeatureGate],
) -> Shapes:
    return Shapes(_published(slices, rules), attributes, gates)


@lru_cache(maxsize=4)
def _published(
    slices: Same[Mapping[str, ResourceSlice]], rules: Same[Mapping[str, DeviceTaintRule]]
) -> PublishedDevices:
    return PublishedDevices(slices.value.values(), rules.value.values())


@lru_cache(maxsize=4)
def _uses(claims: Same[Mapping[str, ResourceClaim]]) -> Mapping[PoolId, PoolUse]:
    return pool_uses(result for claim in claims.value.values() for result in claim.results)


@lru_cache(maxsize=4)
def _backing(classes: Same[Mapping[str, DeviceClass]]) -> Mapping[str, DeviceClass]:
    return classes_by_resource(classes.value.values())
