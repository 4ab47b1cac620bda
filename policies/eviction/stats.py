"""The kubelet's measurements of a node, its filesystems and its pods, as in /stats/summary.

A value that was not measured is None; zero is a measurement. Bytes, inodes and processes are whole
numbers, times are nanoseconds since the epoch.

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
    """The maximum number of processes of a node, and the number that run."""

    max_pids: int | None = None
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
    """The filesystem usage of a container's layer, its logs, or a volume."""

    used: int | None = None
    inodes_used: int | None = None


@dataclass(frozen=True, slots=True)
class ContainerStats:
    """A container: its working set, its writable layer, and its logs."""

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
    """A pod; ``storage_used`` is the total of its local storage, in bytes."""

    working_set: int | None = None
    processes: int | None = None
    storage_used: int | None = None
    containers: tuple[ContainerStats, ...] = ()
    volumes: tuple[VolumeStats, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """The stats of one measurement; ``pods`` by UID."""

    node: NodeStats
    pods: Mapping[str, PodStats] = field(default_factory=dict)
