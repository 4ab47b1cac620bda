"""Builders for eviction: pods, what they use, what their node has left, and what is too little.

::

    bound("memory.available<1Gi", grace="1m"), node(memory="500Mi", at=10)
    evictable("hog", memory="100Mi", priority=-1), uses(memory="700Mi")

Amounts are Kubernetes quantities, times whole seconds. A pod's UID is its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from policies.eviction.config import EvictionConfig, ResolvedConfig, resolve
from policies.eviction.manager import SyncInput, SyncResult, finish_after_reclaim, synchronize
from policies.eviction.manager_state import ManagerState
from policies.eviction.pods import Container, EvictablePod, Volume
from policies.eviction.signals import Signal, ThresholdValue, parse_percentage, read_quantity
from policies.eviction.stats import (
    ContainerStats,
    DiskUsage,
    FilesystemStats,
    MemoryStats,
    NodeStats,
    PodStats,
    ProcessStats,
    Summary,
    VolumeStats,
)
from policies.eviction.thresholds import Threshold
from policies.kubernetes.duration import parse_duration
from policies.kubernetes.quantity import parse_quantity, units

SECOND = 10**9


def whole(text: str) -> int:
    """Return a quantity in whole units."""
    return units(parse_quantity(text))


def value(text: str) -> ThresholdValue:
    """Read a quantity or a percentage."""
    return parse_percentage(text) if text.endswith("%") else read_quantity(text)


def bound(text: str, *, grace: str = "0s", reclaim: str | None = None) -> Threshold:
    """Build a threshold from ``signal<value``."""
    signal, _, amount = text.partition("<")
    least = None if reclaim is None else value(reclaim)
    return Threshold(Signal(signal), value(amount), parse_duration(grace), least)


def container(
    name: str = "main", memory: str = "0", storage: str = "0", limit: str | None = None
) -> Container:
    """Build a container with its requests, and its limit of local storage."""
    return Container(
        name,
        read_quantity(memory),
        read_quantity(storage),
        None if limit is None else read_quantity(limit),
    )


def evictable(
    name: str = "pod",
    *,
    memory: str = "0",
    storage: str = "0",
    storage_limit: str | None = None,
    volumes: Iterable[Volume] = (),
    containers: Iterable[Container] | None = None,
    **fields: Any,
) -> EvictablePod:
    """Build a pod with one container that requests what it requests."""
    own = (container(memory=memory, storage=storage),) if containers is None else tuple(containers)
    return EvictablePod(
        namespace="default",
        name=name,
        uid=name,
        memory_request=whole(memory),
        storage_request=whole(storage),
        storage_limit=None if storage_limit is None else read_quantity(storage_limit),
        containers=own,
        volumes=tuple(volumes),
        **fields,
    )


def scratch(name: str = "scratch", limit: str | None = None, **fields: Any) -> Volume:
    """Build an emptyDir on the node's disk."""
    size = None if limit is None else read_quantity(limit)
    return Volume(name, **{"local": True, "size_limit": size, **fields})


def disk(used: str = "0", inodes: int = 0) -> DiskUsage:
    """Build what is used of a disk."""
    return DiskUsage(whole(used), inodes)


def uses(
    memory: str | None = None,
    *,
    processes: int | None = None,
    layer: DiskUsage | None = None,
    logs: DiskUsage | None = None,
    volumes: Mapping[str, DiskUsage] | None = None,
    storage: str | None = None,
) -> PodStats:
    """Build the stats of a pod with one container, which has all its memory."""
    working_set = None if memory is None else whole(memory)
    return PodStats(
        working_set,
        processes,
        None if storage is None else whole(storage),
        (ContainerStats("main", working_set, layer, logs),),
        tuple(VolumeStats(name, usage) for name, usage in (volumes or {}).items()),
    )


def filesystem(
    available: str = "50Gi",
    capacity: str = "100Gi",
    free: int = 500_000,
    inodes: int = 1_000_000,
    at: int | None = None,
) -> FilesystemStats:
    """Build a filesystem, half full."""
    return FilesystemStats(
        whole(available), whole(capacity), free, inodes, None if at is None else at * SECOND
    )


def node(
    memory: str = "10Gi",
    *,
    of: str = "20Gi",
    running: int = 100,
    most: int = 1000,
    at: int | None = None,
    node_fs: FilesystemStats | None = None,
    image_fs: FilesystemStats | None = None,
    container_fs: FilesystemStats | None = None,
) -> NodeStats:
    """Build a node with so much memory, and half of everything else left."""
    time_ns = None if at is None else at * SECOND
    return NodeStats(
        memory=MemoryStats(whole(memory), whole(of) - whole(memory), None, time_ns),
        node_fs=node_fs or filesystem(at=at),
        image_fs=image_fs,
        container_fs=container_fs,
        processes=ProcessStats(most, running, time_ns),
    )


def plan(*thresholds: Threshold, **fields: Any) -> ResolvedConfig:
    """Plan for these thresholds, and nothing else unless ``fields`` say so."""
    return resolve(EvictionConfig(thresholds, **{"isolates_storage": False, **fields}))


def summary(
    stats: NodeStats | None, pods: Mapping[EvictablePod, PodStats | None]
) -> Summary | None:
    """Build a summary; of some pods nothing may have been measured."""
    if stats is None:
        return None
    return Summary(stats, {pod.uid: used for pod, used in pods.items() if used is not None})


class Kubelet:
    """A kubelet that is shown one sample after another."""

    def __init__(self, plan: ResolvedConfig) -> None:
        self.plan = plan
        self.state = ManagerState()

    def sees(
        self,
        at: int,
        stats: NodeStats | None,
        pods: Mapping[EvictablePod, PodStats | None],
        regained: NodeStats | None = None,
    ) -> SyncResult:
        """Play the round at second ``at``; ``regained`` is measured once it has cleaned up."""
        sync = self.begins(at, stats, pods)
        if sync.reclaim:
            sync = finish_after_reclaim(sync, summary(regained, pods))
        self.state = sync.state
        return sync

    def begins(
        self, at: int, stats: NodeStats | None, pods: Mapping[EvictablePod, PodStats | None]
    ) -> SyncResult:
        """Return the round as far as it comes without cleaning up; the kubelet forgets it."""
        sample = SyncInput(at * SECOND, list(pods), summary(stats, pods))
        return synchronize(self.plan, self.state, sample)


def gone(sync: SyncResult) -> list[str]:
    """Name the pods that go."""
    return [eviction.pod.name for eviction in sync.evictions]
