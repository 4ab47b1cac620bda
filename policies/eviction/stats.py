"""What a kubelet measures: the node, its filesystems, and its pods, as /stats/summary tells.

Whatever was not measured is None. Bytes, inodes and processes are whole numbers, times nanoseconds
since the epoch. Zero is a measurement, None is not.

Source: k8s.io/kubelet/pkg/apis/stats/v1alpha1/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Memory of a node, or of the pods' control group, in bytes."""

    available: int | None = None
    working_set: int | None = None
    usage: int | None = None
    time_ns: int | None = None


@dataclass(frozen=True, slots=True)
class FilesystemStats:
    """A filesystem of a node: bytes and inodes."""

    available: int | None = None
    capacity: int | None = None
    inodes_free: int | None = None
    inodes: int | None = None
    time_ns: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessStats:
    """How many processes a node may run at most, and how many it runs."""

    most: int | None = None
    running: int | None = None
    time_ns: int | None = None


@dataclass(frozen=True, slots=True)
class NodeStats:
    """A node; ``allocatable`` is the memory of the system container called pods."""

    memory: MemoryStats | None = None
    allocatable: MemoryStats | None = None
    node_fs: FilesystemStats | None = None
    image_fs: FilesystemStats | None = None
    container_fs: FilesystemStats | None = None
    processes: ProcessStats | None = None


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """What is used of a filesystem by a container's layer, its logs, or a volume."""

    used: int | None = None
    inodes_used: int | None = None


@dataclass(frozen=True, slots=True)
class ContainerStats:
    """A container: its working set, what it wrote, and its logs."""

    name: str
    working_set: int | None = None
    rootfs: DiskUsage | None = None
    logs: DiskUsage | None = None


@dataclass(frozen=True, slots=True)
class VolumeStats:
    """A volume of a pod; ``capacity`` in bytes."""

    name: str
    usage: DiskUsage
    capacity: int | None = None


@dataclass(frozen=True, slots=True)
class PodStats:
    """A pod; ``storage_used`` are the bytes of all its local storage."""

    working_set: int | None = None
    processes: int | None = None
    storage_used: int | None = None
    containers: tuple[ContainerStats, ...] = ()
    volumes: tuple[VolumeStats, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """What was measured at once; ``pods`` by UID."""

    node: NodeStats
    pods: Mapping[str, PodStats] = field(default_factory=dict)
