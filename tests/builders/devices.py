"""Builders of devices: slices, classes and claims of Dynamic Resource Allocation.

A slice on a node has the node's name, as most drivers name their pools::

    gpus("node-1", gpu("gpu-0", numa=0), gpu("gpu-1", numa=1))
    gpu_claim("training", request(count=2), constraints=(same("numa"),))
    held_by("other", "node-1", "gpu-0")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from policies.kubernetes.devices import (
    AllocatedDevice,
    Attribute,
    AttributeType,
    Capacity,
    Counters,
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceNodes,
    DeviceRequest,
    PoolId,
    RequestPolicy,
    ResourceSlice,
)
from policies.kubernetes.quantity import NANOS
from policies.kubernetes.storage import DeviceClaim, ResourceClaim

DRIVER = "gpu.example.com"
GPU = DeviceClass("gpu", (f'device.driver == "{DRIVER}"',), resource="example.com/gpu")
NO_AMOUNTS: Mapping[str, int] = {}


def gpu(
    name: str,
    *,
    capacity: Mapping[str, Capacity] | None = None,
    consumes: Mapping[str, int] = NO_AMOUNTS,
    others: Mapping[str, Any] | None = None,
    **attributes: str | int | bool | Attribute,
) -> Device:
    """Build a device; ``consumes`` are whole units of the counters "memory", by counter name."""
    amounts = tuple((each, amount * NANOS) for each, amount in consumes.items())
    return Device(
        name,
        attributes={each: attribute(value) for each, value in attributes.items()},
        capacity=capacity or {},
        consumes=(Counters("set", amounts),) if amounts else (),
        **(others or {}),
    )


def attribute(value: str | int | bool | Attribute) -> Attribute:  # noqa: FBT001 - a value
    """Build an attribute of the type of ``value``."""
    if isinstance(value, Attribute):
        return value
    types = {str: AttributeType.STRING, int: AttributeType.INT, bool: AttributeType.BOOL}
    return Attribute(types[type(value)], value)


def units(value: int, policy: RequestPolicy | None = None) -> Capacity:
    """Build a capacity of whole units."""
    return Capacity(value * NANOS, policy)


def gpus(node: str, *devices: Device, name: str | None = None, **fields: Any) -> ResourceSlice:
    """Build a slice on a node; ``fields`` are those of ResourceSlice."""
    nodes = DeviceNodes(node)
    defaults = {"nodes": nodes, "pool": PoolId(DRIVER, node), "devices": devices}
    return ResourceSlice(name or f"{node}-gpus", **{**defaults, **fields})


def request(name: str = "gpus", **fields: Any) -> DeviceRequest:
    """Build a request of class gpu; ``fields`` are those of DeviceRequest."""
    return DeviceRequest(
        name, **{"device_class": "" if "first_available" in fields else GPU.name, **fields}
    )


def same(attribute: str, *requests: str) -> DeviceConstraint:
    """Build a constraint: the attribute of the driver is the same for all devices."""
    return DeviceConstraint(f"{DRIVER}/{attribute}", frozenset(requests))


def gpu_claim(name: str, *requests: DeviceRequest, **fields: Any) -> ResourceClaim:
    """Build a claim that is not allocated; ``fields`` are those of ResourceClaim."""
    return ResourceClaim("default", name, requests=requests or (request(),), **fields)


def held_by(name: str, pool: str, *devices: str, **fields: Any) -> ResourceClaim:
    """Build an allocated claim that holds ``devices``; ``fields`` are those of AllocatedDevice."""
    held = tuple(AllocatedDevice(PoolId(DRIVER, pool), each, **fields) for each in devices)
    return ResourceClaim("default", name, allocated=True, results=held)


def uses(*claims: str) -> Iterable[DeviceClaim]:
    """Return the references of a pod to claims."""
    return [DeviceClaim(each, each) for each in claims]
