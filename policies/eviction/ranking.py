"""The eviction order of pods when a node runs short of a resource.

    memory    no stats, usage above its request, lower priority, larger usage above its request
    disk      the same, with the usage that the layout counts of a pod
    pids      lower priority, no stats, more processes

A pod without stats comes first wherever usage is compared. Upstream's order of full ties is random;
here the name decides.

*An upstream oddity that is kept.* Pods cannot request inodes, so any use of inodes exceeds the
request; but the excess is the number of inodes less the pod's request of *bytes* of local storage.

Sources: rankMemoryPressure, rankDiskPressureFunc, rankPIDPressure and their comparators in
pkg/kubelet/eviction/helpers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from policies.eviction.filesystems import DiskUsageSource, Layout
from policies.eviction.pods import EvictablePod, Volume
from policies.eviction.signals import RESOURCES, Resource, Signal
from policies.eviction.stats import DiskUsage, PodStats
from policies.kubernetes.criteria import Criterion, Order

StatsByUid = Mapping[str, PodStats]
"""Stats by the pods' UIDs."""


@dataclass(frozen=True, slots=True)
class PodUsage:
    """A pod with its usage of the resource that is short: bytes, inodes or processes.

    ``usage`` is None without stats; ``request`` is the amount that usage is compared with;
    ``excess`` is how far usage exceeds the request.
    """

    pod: EvictablePod
    usage: int | None
    request: int = 0
    excess: int = 0

    @property
    def exceeds(self) -> bool:
        """Whether usage exceeds the request."""
        return self.usage is not None and self.usage > self.request


@dataclass(frozen=True, slots=True)
class RankingStep:
    """The criterion that ranks a pod directly ahead of another."""

    pod: EvictablePod
    ahead_of: EvictablePod
    criterion: str


_NO_STATS: Final[Criterion[PodUsage]] = Criterion("no stats", lambda it: it.usage is not None)
_PRIORITY: Final[Criterion[PodUsage]] = Criterion("lower priority", lambda it: it.pod.priority)


def _pod_key(usage: PodUsage) -> str:
    return usage.pod.key


BY_REQUEST: Final[Order[PodUsage]] = Order(
    (
        _NO_STATS,
        Criterion("usage above its request", lambda it: not it.exceeds),
        _PRIORITY,
        Criterion("larger usage above its request", lambda it: -it.excess),
    ),
    last=_pod_key,
    last_name="name",
)
"""The order for memory and disks."""

BY_PROCESSES: Final[Order[PodUsage]] = Order(
    (_PRIORITY, _NO_STATS, Criterion("more processes", lambda it: -it.excess)),
    last=_pod_key,
    last_name="name",
)
"""The order for process IDs."""


def order_for(signal: Signal) -> Order[PodUsage]:
    """Return the eviction order when ``signal`` runs short."""
    return BY_PROCESSES if signal is Signal.PIDS else BY_REQUEST


def rank(
    pods: Iterable[EvictablePod], stats: StatsByUid, signal: Signal, layout: Layout
) -> list[PodUsage]:
    """Sort ``pods`` in eviction order for ``signal``."""
    return order_for(signal).sort(_pod_usages(pods, stats, signal, layout))


def first_evictable_pod(
    pods: Iterable[EvictablePod], stats: StatsByUid, signal: Signal, layout: Layout
) -> EvictablePod | None:
    """Return the first pod of the ranking that can be evicted; None if all are critical."""
    evictable = [pod for pod in pods if not pod.critical]
    usages = _pod_usages(evictable, stats, signal, layout)
    first = min(usages, key=order_for(signal).key, default=None)
    return None if first is None else first.pod


def ranking_steps(ranking: Iterable[PodUsage], signal: Signal) -> list[RankingStep]:
    """Return for each pod but the last the criterion that ranks it ahead of the next one."""
    order = order_for(signal)
    return [
        RankingStep(ahead.pod, behind.pod, order.deciding_criterion(ahead, behind))
        for ahead, behind in pairwise(ranking)
    ]


def _pod_usages(
    pods: Iterable[EvictablePod], stats: StatsByUid, signal: Signal, layout: Layout
) -> list[PodUsage]:
    measure = _measure(signal, layout)
    measured = ((pod, stats.get(pod.uid)) for pod in pods)
    return [PodUsage(pod, None) if own is None else measure(pod, own) for pod, own in measured]


UsageFunction = Callable[[EvictablePod, PodStats], PodUsage]
CountedUsageFunction = Callable[[EvictablePod, PodStats], list[DiskUsage | None]]


def _measure(signal: Signal, layout: Layout) -> UsageFunction:
    match RESOURCES[signal]:
        case Resource.MEMORY:
            return _memory
        case Resource.PIDS:
            return _processes
        case Resource.STORAGE:
            counted = _counted_usages(layout.counted_usage(signal))
            return lambda pod, stats: _storage(pod, stats, counted)
        case Resource.INODES:
            counted = _counted_usages(layout.counted_usage(signal))
            return lambda pod, stats: _inodes(pod, stats, counted)


def _memory(pod: EvictablePod, stats: PodStats) -> PodUsage:
    usage, request = stats.working_set or 0, pod.memory_request
    return PodUsage(pod, usage, request, usage - request)


def _processes(pod: EvictablePod, stats: PodStats) -> PodUsage:
    usage = stats.processes or 0
    return PodUsage(pod, usage, excess=usage)


def _storage(pod: EvictablePod, stats: PodStats, counted: CountedUsageFunction) -> PodUsage:
    usage = sum([each.used or 0 for each in counted(pod, stats) if each is not None])
    return PodUsage(pod, usage, pod.storage_request, usage - pod.storage_request)


def _inodes(pod: EvictablePod, stats: PodStats, counted: CountedUsageFunction) -> PodUsage:
    usage = sum([each.inodes_used or 0 for each in counted(pod, stats) if each is not None])
    return PodUsage(pod, usage, 0, usage - pod.storage_request)


def _counted_usages(parts: frozenset[DiskUsageSource]) -> CountedUsageFunction:
    """Return a function that lists the counted disk usages of a pod; None for unmeasured ones."""
    layers, logs, volumes = (
        each in parts
        for each in (DiskUsageSource.LAYERS, DiskUsageSource.LOGS, DiskUsageSource.VOLUMES)
    )

    def counted(pod: EvictablePod, stats: PodStats) -> list[DiskUsage | None]:
        found: list[DiskUsage | None] = []
        if layers:
            found.extend([container.rootfs for container in stats.containers])
        if logs:
            found.extend([container.logs for container in stats.containers])
        if volumes:
            found.extend([_usage_of(each, stats) for each in pod.volumes if each.local])
        return found

    return counted


def _usage_of(volume: Volume, stats: PodStats) -> DiskUsage | None:
    """Return the usage of a volume; of several volumes with one name, the first in the stats."""
    for each in stats.volumes:
        if each.name == volume.name:
            return each.usage
    return None
