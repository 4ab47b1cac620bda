"""Builders for eviction: thresholds, pods, stats of pods and nodes, syncs and forecasts.

::

    bound("memory.available<1Gi", grace="1m"), node(memory="500Mi", at=10)
    evictable("hog", memory="100Mi", priority=-1), uses(memory="700Mi")

Amounts are Kubernetes quantities, times whole seconds. A pod's UID is its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from policies.eviction.config import EvictionConfig, ResolvedConfig, resolve
from policies.eviction.forecast import NO_HISTORY, NodeForecast, forecast_node
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
    """Build a pod; by default its one container has the pod's requests."""
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
    """Build the usage of a disk."""
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
    """Build the stats of a pod whose one container uses all of its memory."""
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
    """Build the stats of a node with this memory available, and half of everything else."""
    time_ns = None if at is None else at * SECOND
    return NodeStats(
        memory=MemoryStats(whole(memory), whole(of) - whole(memory), None, time_ns),
        node_fs=node_fs or filesystem(at=at),
        image_fs=image_fs,
        container_fs=container_fs,
        processes=ProcessStats(most, running, time_ns),
    )


def plan(*thresholds: Threshold, **fields: Any) -> ResolvedConfig:
    """Resolve a configuration with these thresholds and ``fields``."""
    return resolve(EvictionConfig(thresholds, **{"isolates_storage": False, **fields}))


def summary(
    stats: NodeStats | None, pods: Mapping[EvictablePod, PodStats | None]
) -> Summary | None:
    """Build a summary; pods without stats are left out."""
    if stats is None:
        return None
    return Summary(stats, {pod.uid: used for pod, used in pods.items() if used is not None})


def forecast(
    config: ResolvedConfig,
    *samples: NodeStats,
    pods: Mapping[EvictablePod, PodStats | None],
    name: str = "n",
) -> NodeForecast:
    """Return the forecast of a node after samples that were taken ten seconds apart."""
    history = NO_HISTORY
    for index, stats in enumerate(samples):
        sample = SyncInput(index * 10 * SECOND, list(pods), summary(stats, pods))
        found = forecast_node(name, config, history, sample)
        history = found.history
    return found


def falling(*memory: str, **fields: Any) -> list[NodeStats]:
    """Build samples of a node's available memory, taken ten seconds apart."""
    return [node(each, at=10 * index, **fields) for index, each in enumerate(memory)]


class Kubelet:
    """An eviction manager that keeps its state between syncs."""

    def __init__(self, config: ResolvedConfig) -> None:
        self.config = config
        self.state = ManagerState()

    def sync(
        self,
        at: int,
        stats: NodeStats | None,
        pods: Mapping[EvictablePod, PodStats | None],
        reclaimed: NodeStats | None = None,
    ) -> SyncResult:
        """Sync at second ``at``; ``reclaimed`` are the stats after node-level reclaim."""
        result = self.start_sync(at, stats, pods)
        if result.reclaim:
            result = finish_after_reclaim(result, summary(reclaimed, pods))
        self.state = result.state
        return result

    def start_sync(
        self, at: int, stats: NodeStats | None, pods: Mapping[EvictablePod, PodStats | None]
    ) -> SyncResult:
        """Return the result before node-level reclaim, and keep the state as it is."""
        sample = SyncInput(at * SECOND, list(pods), summary(stats, pods))
        return synchronize(self.config, self.state, sample)


def evicted_names(sync: SyncResult) -> list[str]:
    """Return the names of the evicted pods."""
    return [eviction.pod.name for eviction in sync.evictions]
