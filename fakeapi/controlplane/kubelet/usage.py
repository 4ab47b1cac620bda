"""Default resource usage, where no script defines it.

    memory       half of what is requested, or 16Mi
    cpu          a tenth of what is requested, or 1m
    disk         1Mi of its own layer, 64Ki of logs, 16 inodes
    processes    1

A node itself uses 256Mi of memory, 2Gi of its disk, 1Gi of the one for images, 100m, 100 processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fakeapi.controlplane.kubelet.curves import Curve, curve_from_steps
from fakeapi.controlplane.kubelet.scripts import Steps
from fakeapi.controlplane.kubelet.shapes import ContainerResources, ResourceAmounts
from policies.quantity import QuantityError, parse_quantity, units

MI: Final = 2**20

NODE_USAGE: Final[Mapping[str, int]] = {
    "cpu": 100 * 10**6,
    "memory": 256 * MI,
    "disk": 2048 * MI,
    "images": 1024 * MI,
    "inodes": 50_000,
    "processes": 100,
}
_CONTAINER_USAGE: Final[Mapping[str, int]] = {
    "cpu": 10**6,
    "memory": 16 * MI,
    "disk": MI,
    "logs": 64 * 2**10,
    "inodes": 16,
    "processes": 1,
}
_PERSISTENT: Final = ("disk", "logs", "inodes")


def parse_amount(amounts: ResourceAmounts | None, name: str) -> int:
    """Return an amount of a resource list in nanos; 0 if it is absent or malformed."""
    try:
        return parse_quantity(str((amounts or {}).get(name, 0)))
    except QuantityError:
        return 0


def default_usage(name: str, resources: ContainerResources | None) -> int:
    """Return a container's default usage of a resource."""
    asked = parse_amount(resources.requests if resources else None, name)
    if name == "memory" and asked:
        return units(asked) // 2
    if name == "cpu" and asked:
        return asked // 10
    return _CONTAINER_USAGE[name]


def usage_curve(name: str, first: int, steps: Steps) -> Curve:
    """Return the curve of a resource's usage."""
    return curve_from_steps(first, steps.get(name, ()))


def is_persistent(name: str) -> bool:
    """Return whether a terminated container still uses a resource."""
    return name in _PERSISTENT
