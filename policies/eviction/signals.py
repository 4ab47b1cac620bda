"""Eviction signals: nine signals, the resource of each, and the pressure it indicates.

Two signals observe memory, six observe disks (bytes or inodes of one of three filesystems), one
observes process IDs. Every signal is an amount that is still *available*, so all thresholds are
lower bounds. The amount of a threshold is a quantity, or a percentage of the capacity.

Percentages are float32 upstream: the text is rounded to float32, divided by 100 and rounded again,
then multiplied, as float64, with the capacity; the fraction is truncated. So 10% of 10Gi is
1073741840, sixteen bytes above 1Gi:

    float32(10) / 100 = 0.100000001490116   x 10737418240 = 1073741840.0

The number is kept as it is after the second rounding; no other value is a float.

Sources: pkg/kubelet/eviction/api/types.go (GetThresholdQuantity), pkg/kubelet/eviction/helpers.go
(the tables at its head, parsePercentage), strconv.ParseFloat.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from policies.kubernetes.duration import quoted
from policies.kubernetes.quantity import (
    NANOS,
    QuantityError,
    as_decoded,
    format_binary,
    parse_error_message,
    parse_quantity,
)


class Signal(StrEnum):
    """An amount of a resource that a node has available."""

    MEMORY = "memory.available"
    ALLOCATABLE_MEMORY = "allocatableMemory.available"
    NODE_FS = "nodefs.available"
    NODE_FS_INODES = "nodefs.inodesFree"
    IMAGE_FS = "imagefs.available"
    IMAGE_FS_INODES = "imagefs.inodesFree"
    CONTAINER_FS = "containerfs.available"
    CONTAINER_FS_INODES = "containerfs.inodesFree"
    PIDS = "pid.available"


class Resource(StrEnum):
    """A resource that a node runs short of, as events and messages name it."""

    MEMORY = "memory"
    STORAGE = "ephemeral-storage"
    INODES = "inodes"
    PIDS = "pids"


class Pressure(StrEnum):
    """A pressure condition of the node, by its type."""

    DISK = "DiskPressure"
    MEMORY = "MemoryPressure"
    PID = "PIDPressure"


RESOURCES: Final[Mapping[Signal, Resource]] = {
    Signal.MEMORY: Resource.MEMORY,
    Signal.ALLOCATABLE_MEMORY: Resource.MEMORY,
    Signal.NODE_FS: Resource.STORAGE,
    Signal.NODE_FS_INODES: Resource.INODES,
    Signal.IMAGE_FS: Resource.STORAGE,
    Signal.IMAGE_FS_INODES: Resource.INODES,
    Signal.CONTAINER_FS: Resource.STORAGE,
    Signal.CONTAINER_FS_INODES: Resource.INODES,
    Signal.PIDS: Resource.PIDS,
}

PRESSURES: Final[Mapping[Signal, Pressure]] = {
    signal: {Resource.MEMORY: Pressure.MEMORY, Resource.PIDS: Pressure.PID}.get(
        resource, Pressure.DISK
    )
    for signal, resource in RESOURCES.items()
}

MEMORY_SIGNALS: Final = (Signal.MEMORY, Signal.ALLOCATABLE_MEMORY)
"""Signals that are acted on before all others."""

_NUMBER: Final = re.compile(
    r"[+-]?(?:(?P<digits>[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity)",
    re.ASCII | re.IGNORECASE,
)
_BEYOND_FLOAT32: Final = 2.0**128 - 2.0**103
_DIGITLESS: Final = re.compile(r"^[+-]?+(?![0-9]|\.[0-9])")


@dataclass(frozen=True, slots=True)
class Quantity:
    """An absolute amount in nanos, and its Kubernetes notation; equal if the amounts are."""

    nanos: int
    text: str = field(compare=False)

    def nanos_of(self, capacity: int) -> int:  # noqa: ARG002 - as of Share
        """Return the amount in nanos, regardless of the capacity."""
        return self.nanos

    def formatted(self, capacity: int) -> str:  # noqa: ARG002 - as of Share
        """Return the amount as messages show it."""
        return self.text


@dataclass(frozen=True, slots=True)
class Percentage:
    """A fraction of the capacity: 0.1 (in float32) for ``10%``; ``text`` is how it was written."""

    fraction: float
    text: str = field(default="", compare=False)

    def nanos_of(self, capacity: int) -> int:
        """Return the amount in nanos for a capacity in whole units."""
        return int(capacity * self.fraction) * NANOS

    def formatted(self, capacity: int) -> str:
        """Return the amount as messages show it: in binary units, whatever it counts."""
        return format_binary(int(capacity * self.fraction))


ThresholdValue = Quantity | Percentage

ZERO_QUANTITY: Final = Quantity(0, "0")


def read_quantity(text: str) -> Quantity:
    """Parse a Kubernetes quantity. Raise ValueError with upstream's error text."""
    try:
        # Upstream accepts a suffix without a number as zero.
        digits = _DIGITLESS.sub(r"\g<0>0", text) if text else text
        return Quantity(parse_quantity(digits), as_decoded(digits))
    except QuantityError:
        raise ValueError(parse_error_message(text)) from None


def percentage_from_fraction(fraction: float, text: str = "") -> Percentage:
    """Round a fraction of the capacity to float32: 0.1 is a tenth."""
    return Percentage(_float32(fraction), text or f"{fraction * 100:g}%")


def parse_percentage(text: str) -> Percentage:
    """Parse ``10.5%``. Raise ValueError with upstream's error text, and for "nan"."""
    number = text.rstrip("%")
    match = _NUMBER.fullmatch(number)
    if match is None:
        raise ValueError(f"strconv.ParseFloat: parsing {quoted(number)}: invalid syntax")
    parsed = float(number)
    if match["digits"] and abs(parsed) >= _BEYOND_FLOAT32:
        raise ValueError(f"strconv.ParseFloat: parsing {quoted(number)}: value out of range")
    return Percentage(_float32(_float32(parsed) / 100), text)


def _float32(number: float) -> float:
    rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return rounded
