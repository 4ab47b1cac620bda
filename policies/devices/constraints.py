"""Rules for devices that are taken together: attribute constraints, and capacities of a device.

A capacity is rounded up by the device's policy for requests: to one of its valid values, or from
its minimum by whole steps.

    minimum 2, step 2: a request of 3 consumes 4, one of 1 consumes 2

Source: constraint.go and consumable_capacity.go in k8s.io/dynamic-resource-allocation/structured/
internal/incubating.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policies.devices.expressions import stored_names
from policies.kubernetes.devices import Attribute, Capacity, Device, DeviceConstraint, RequestPolicy
from policies.kubernetes.quantity import NANOS

WHOLE = NANOS
MILLI = NANOS // 1000


def find_attribute(device: Device, driver: str, name: str) -> Attribute | None:
    """Return the attribute with a fully qualified name; None if the device has none."""
    for stored in stored_names(name, driver):
        if stored in device.attributes:
            return device.attributes[stored]
    return None


def allows(constraint: DeviceConstraint, taken: Sequence[Attribute], attribute: Attribute) -> bool:
    """Return whether a device with ``attribute`` may be taken after those with ``taken``."""
    if constraint.distinct:
        return attribute not in taken
    return not taken or attribute == taken[0]


def consumed_capacity(
    device: Device, requested: Mapping[str, int], finest: int
) -> Mapping[str, int] | None:
    """Return what a request consumes of a device; None if a policy or the device forbids it.

    ``finest`` is the smallest unit of a policy's steps, in nanos: WHOLE, or MILLI for fractions.
    """
    if not requested.keys() <= device.capacity.keys():
        return None
    consumed: dict[str, int] = {}
    for name, capacity in device.capacity.items():
        amount = _consumed(requested.get(name), capacity, finest)
        if amount is None:
            return None
        consumed[name] = amount
    return consumed


def _consumed(requested: int | None, capacity: Capacity, finest: int) -> int | None:
    policy = capacity.policy
    if requested is None:
        default = None if policy is None else policy.default
        amount = capacity.value if default is None else default
    else:
        amount = requested if policy is None else _rounded(requested, policy, finest)
    return amount if policy is None or _is_valid(amount, policy, finest) else None


def _rounded(amount: int, policy: RequestPolicy, finest: int) -> int:
    if policy.minimum is None:
        return next((value for value in policy.values if amount <= value), amount)
    if amount < policy.minimum:
        return policy.minimum
    if policy.step is None:
        return amount
    unit = _unit(policy, finest)
    minimum, step = _up(policy.minimum, unit), _up(policy.step, unit)
    return (minimum + step * _up(_up(amount, unit) - minimum, step)) * unit


def _is_valid(amount: int, policy: RequestPolicy, finest: int) -> bool:
    if amount == policy.default:
        return True
    if policy.minimum is None:
        return not policy.values or amount in policy.values
    if policy.maximum is not None and amount > policy.maximum:
        return False
    unit = _unit(policy, finest)
    steps = _up(amount, unit) - _up(policy.minimum, unit)
    return policy.step is None or steps % _up(policy.step, unit) == 0


def _unit(policy: RequestPolicy, finest: int) -> int:
    amounts = (policy.minimum or 0, policy.maximum or 0, policy.step or 0)
    return finest if all(each % finest == 0 for each in amounts) else WHOLE


def _up(amount: int, unit: int) -> int:
    """Divide and round up."""
    return -(-amount // unit)
