"""Eviction signals: nine signals, the resource of each, and the pressure it indicates.

Two signals observe memory, six observe disks (bytes or inodes of one of three filesystems), one
observes process IDs. Every signal is an amount that is still *available*, so all thresholds are
lower bounds.

Sources: pkg/kubelet/eviction/api/types.go and the tables at the head of
pkg/kubelet/eviction/helpers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


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
