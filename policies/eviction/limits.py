"""Local storage eviction: pods that exceed their storage limits, regardless of node pressure.

Three limits are checked, and the first that is exceeded counts: the size limit of an emptyDir, the
limit of the pod (the sum of its containers' limits), the limit of one container (its logs, and its
writable layer unless that is on a dedicated filesystem). Every pod that exceeds one is evicted in
the same round; the round then evicts no pod for node pressure.

Source: localStorageEviction and the functions it calls in pkg/kubelet/eviction/eviction_manager.go.
"""

from __future__ import annotations

from policies.eviction.configuration import EvictionConfig
from policies.eviction.pods import EvictablePod, Volume
from policies.eviction.stats import ContainerStats, DiskUsage, PodStats, VolumeStats
from policies.eviction.values import Quantity, quoted
from policies.quantity import NANOS
from policies.spelling import format_binary


def exceeded_limit_message(
    pod: EvictablePod, stats: PodStats, configuration: EvictionConfig
) -> str:
    """Return upstream's message for the local storage limit that a pod exceeds; "" if none."""
    return (
        _volume_over_limit(pod, stats, configuration)
        or _pod_over_limit(pod, stats)
        or _container_over_limit(pod, stats, configuration)
    )


def _volume_over_limit(pod: EvictablePod, stats: PodStats, configuration: EvictionConfig) -> str:
    if not pod.volumes or not stats.volumes:
        return ""
    as_large_as_now = configuration.release.memory_backed_volumes
    for volume in pod.volumes:
        limit = volume.size_limit
        if volume.in_memory and as_large_as_now:
            limit = _capacity(volume, stats.volumes)
        if limit is not None and _over(_used_of(volume, stats.volumes), limit):
            return (
                f"Usage of EmptyDir volume {quoted(volume.name)} exceeds the limit "
                f"{quoted(limit.text)}. "
            )
    return ""


def _used_of(volume: Volume, measured: tuple[VolumeStats, ...]) -> int | None:
    """Return the usage of a volume; of several volumes with one name, upstream takes the last."""
    return next((each.usage.used for each in reversed(measured) if each.name == volume.name), None)


def _capacity(volume: Volume, measured: tuple[VolumeStats, ...]) -> Quantity | None:
    for each in measured:
        if each.name == volume.name and each.capacity is not None:
            return Quantity(each.capacity * NANOS, format_binary(each.capacity))
    return None


def _pod_over_limit(pod: EvictablePod, stats: PodStats) -> str:
    limit = pod.storage_limit
    if limit is None or (stats.storage_used or 0) * NANOS <= limit.nanos:
        return ""
    return f"Pod ephemeral local storage usage exceeds the total limit of containers {limit.text}. "


def _container_over_limit(pod: EvictablePod, stats: PodStats, configuration: EvictionConfig) -> str:
    limits = [(each.name, each.storage_limit) for each in pod.containers if each.storage_limit]
    if not limits:
        return ""
    for container in stats.containers:
        for name, limit in limits:
            if name == container.name and _over(_written(container, configuration), limit):
                return (
                    f"Container {name} exceeded its local ephemeral storage limit "
                    f"{quoted(limit.text)}. "
                )
    return ""


def _written(container: ContainerStats, configuration: EvictionConfig) -> int:
    layer = None if configuration.layout.dedicated_images else container.rootfs
    return _used(container.logs) + _used(layer)


def _used(usage: DiskUsage | None) -> int:
    return 0 if usage is None else usage.used or 0


def _over(used: int | None, limit: Quantity) -> bool:
    return used is not None and limit.nanos > 0 and used * NANOS > limit.nanos
