"""The objects of Dynamic Resource Allocation: published devices, and requests for them.

A driver publishes its devices in *slices*. The slices of a driver with the same pool name form a
*pool*; only those of its highest generation count, and only if all of them are there. A *class*
selects devices by expressions (CEL), and a claim requests devices of a class. An allocated claim
lists its devices, which are then in use.

Amounts are nanos (see policies.kubernetes.quantity). Source: k8s.io/api/resource/v1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from policies.kubernetes.selectors import NodeSelector


class AttributeType(Enum):
    """The type of an attribute; UNSUPPORTED is a list, or a type that is not known."""

    STRING = "string"
    INT = "int"
    BOOL = "bool"
    VERSION = "version"
    UNSUPPORTED = "unsupported"


class Attribute(NamedTuple):
    """The value of a device attribute; values of different types are different."""

    type: AttributeType
    value: str | int | bool


class RequestPolicy(NamedTuple):
    """How requests of a capacity are rounded: to ``values``, or from ``minimum`` up by ``step``."""

    default: int | None = None
    values: tuple[int, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    step: int | None = None


class Capacity(NamedTuple):
    """A capacity of a device, and the policy for requests of it."""

    value: int
    policy: RequestPolicy | None = None


class Counters(NamedTuple):
    """Amounts by name in the counter set ``name``."""

    name: str
    amounts: tuple[tuple[str, int], ...] = ()


class DeviceTaint(NamedTuple):
    """A taint of a device."""

    key: str
    value: str
    effect: str


class DeviceToleration(NamedTuple):
    """A toleration of device taints; an empty key or effect matches all."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: DeviceTaint) -> bool:
        """Return whether the taint is tolerated (ToleratesTaint)."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        return self.operator == "Exists" or (
            self.operator in ("", "Equal") and self.value == taint.value
        )


class DeviceNodes(NamedTuple):
    """The nodes of a slice or device: one by name, all, or those that ``selector`` matches."""

    name: str = ""
    every: bool = False
    selector: NodeSelector | None = None

    def matches(self, node: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node is one of them (NodeMatches)."""
        if self.name:
            return self.name == node
        return self.every or (self.selector is not None and self.selector.matches(node, labels))


NO_NODES = DeviceNodes()


@dataclass(frozen=True, slots=True)
class Device:
    """A device.

    ``attributes`` and ``capacity`` are by name, with a domain or without. ``shared``: several
    claims may use it (allowMultipleAllocations). ``binds``: it has binding conditions. ``nodes`` is
    read if its slice leaves the choice of nodes to its devices. ``unsupported`` names a field that
    is not evaluated ("": none).
    """

    name: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    capacity: Mapping[str, Capacity] = field(default_factory=dict)
    taints: tuple[DeviceTaint, ...] = ()
    consumes: tuple[Counters, ...] = ()
    shared: bool = False
    binds: bool = False
    nodes: DeviceNodes = NO_NODES
    unsupported: str = ""


class PoolId(NamedTuple):
    """The identity of a pool."""

    driver: str
    pool: str


@dataclass(frozen=True, slots=True)
class ResourceSlice:
    """Some devices or counter sets of a pool; ``count`` is the number of slices of the pool.

    ``nodes`` is None if each device has its own.
    """

    name: str
    pool: PoolId
    generation: int = 1
    count: int = 1
    nodes: DeviceNodes | None = NO_NODES
    devices: tuple[Device, ...] = ()
    counters: tuple[Counters, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A class of devices; ``selectors`` are CEL expressions.

    ``resource`` is the extended resource that requests devices of the class ("": only the implicit
    name). ``created_ns`` is the creation time in nanoseconds.
    """

    name: str
    selectors: tuple[str, ...] = ()
    resource: str = ""
    created_ns: int = 0


@dataclass(frozen=True, slots=True)
class DeviceTaintRule:
    """A taint of the devices with this driver, pool and name (None: any)."""

    name: str
    taint: DeviceTaint
    driver: str | None = None
    pool: str | None = None
    device: str | None = None

    def selects_pool(self, pool: PoolId) -> bool:
        """Return whether the rule may taint devices of a pool."""
        return self.driver in (None, pool.driver) and self.pool in (None, pool.pool)

    def selects(self, pool: PoolId, device: str) -> bool:
        """Return whether the rule taints a device."""
        return self.selects_pool(pool) and self.device in (None, device)


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A request for ``count`` devices of a class, or for all that match (None).

    ``first_available`` are alternatives, the first that can be met is taken; other fields are then
    empty. ``capacity`` are the requested capacities of a shared device. ``unsupported`` names a
    field that is not evaluated ("": none).
    """

    name: str
    device_class: str = ""
    selectors: tuple[str, ...] = ()
    count: int | None = 1
    admin: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: tuple[tuple[str, int], ...] = ()
    first_available: tuple[DeviceRequest, ...] = ()
    unsupported: str = ""

    def alternatives(self) -> tuple[DeviceRequest, ...]:
        """Return the alternatives; the request itself if it has none."""
        return self.first_available or (self,)


class DeviceConstraint(NamedTuple):
    """A constraint on ``attribute`` of the devices of some ``requests`` (empty: all).

    It has the same value for all devices, or, with ``distinct``, a different one for each.
    """

    attribute: str
    requests: frozenset[str] = frozenset()
    distinct: bool = False


class AllocatedDevice(NamedTuple):
    """A device that a claim uses; ``capacity`` is what it consumes of a shared device."""

    pool: PoolId
    device: str
    admin: bool = False
    shared: bool = False
    capacity: tuple[tuple[str, int], ...] = ()


class PoolUse(NamedTuple):
    """The devices of a pool that are in use: exclusively, and shared with what is consumed."""

    devices: frozenset[str] = frozenset()
    shared: frozenset[tuple[str, tuple[tuple[str, int], ...]]] = frozenset()


UNUSED = PoolUse()


def pool_uses(allocated: Iterable[AllocatedDevice]) -> Mapping[PoolId, PoolUse]:
    """Return the devices in use by pool; administrators' allocations do not count.

    Source: GatherAllocatedState in k8s.io/dynamic-resource-allocation/structured.
    """
    exclusive: dict[PoolId, set[str]] = {}
    shared: dict[PoolId, dict[str, dict[str, int]]] = {}
    for each in allocated:
        if each.admin:
            continue
        if not each.shared:
            exclusive.setdefault(each.pool, set()).add(each.device)
            continue
        total = shared.setdefault(each.pool, {}).setdefault(each.device, {})
        for name, amount in each.capacity:
            total[name] = total.get(name, 0) + amount
    return {
        pool: PoolUse(
            frozenset(exclusive.get(pool, ())),
            frozenset(
                (device, tuple(sorted(total.items())))
                for device, total in shared.get(pool, {}).items()
            ),
        )
        for pool in exclusive.keys() | shared.keys()
    }


@dataclass(frozen=True, slots=True)
class ExtendedRequest:
    """A request for ``count`` of the extended resource ``resource``, as a device request of it."""

    name: str
    resource: str
    count: int


IMPLICIT_RESOURCE = "deviceclass.resource.kubernetes.io/"


def classes_by_resource(classes: Iterable[DeviceClass]) -> Mapping[str, DeviceClass]:
    """Return the class behind each extended resource: the newest, of several the first by name.

    Source: k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache.
    """
    found: dict[str, DeviceClass] = {}
    for each in sorted(classes, key=lambda it: (-it.created_ns, it.name)):
        for resource in _resources_of(each):
            found.setdefault(resource, each)
    return found


def _resources_of(each: DeviceClass) -> Iterator[str]:
    yield IMPLICIT_RESOURCE + each.name
    if each.resource:
        yield each.resource
