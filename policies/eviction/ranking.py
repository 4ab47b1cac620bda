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

from policies.eviction.filesystems import Layout, Part
from policies.eviction.pods import EvictablePod, Volume
from policies.eviction.signals import RESOURCES, Resource, Signal
from policies.eviction.stats import DiskUsage, PodStats
from policies.order import Criterion, Order

StatsOf = Mapping[str, PodStats]
"""Stats by the pods' UIDs."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A pod with its usage of the resource that is short: bytes, inodes or processes.

    ``usage`` is None without stats; ``request`` is the amount that usage is compared with;
    ``excess`` is how far usage exceeds the request.
    """

    pod: EvictablePod
    usage: int | None
    request: int = 0
    above: int = 0

    @property
    def exceeds(self) -> bool:
        """Whether usage exceeds the request."""
        return self.usage is not None and self.usage > self.request


@dataclass(frozen=True, slots=True)
class Step:
    """The criterion that ranks a pod directly ahead of another."""

    pod: EvictablePod
    ahead_of: EvictablePod
    criterion: str


_UNMEASURED: Final[Criterion[Standing]] = Criterion("no stats", lambda it: it.usage is not None)
_PRIORITY: Final[Criterion[Standing]] = Criterion("lower priority", lambda it: it.pod.priority)


def _name(standing: Standing) -> str:
    return standing.pod.key


BY_REQUEST: Final[Order[Standing]] = Order(
    (
        _UNMEASURED,
        Criterion("usage above its request", lambda it: not it.exceeds),
        _PRIORITY,
        Criterion("larger usage above its request", lambda it: -it.above),
    ),
    last=_name,
    last_name="name",
)
"""The order for memory and disks."""

BY_PROCESSES: Final[Order[Standing]] = Order(
    (_PRIORITY, _UNMEASURED, Criterion("more processes", lambda it: -it.above)),
    last=_name,
    last_name="name",
)
"""The order for process IDs."""


def order_for(signal: Signal) -> Order[Standing]:
    """Return the eviction order when ``signal`` runs short."""
    return BY_PROCESSES if signal is Signal.PIDS else BY_REQUEST


def rank(
    pods: Iterable[EvictablePod], stats: StatsOf, signal: Signal, layout: Layout
) -> list[Standing]:
    """Sort ``pods`` in eviction order for ``signal``."""
    return order_for(signal).sort(_standings(pods, stats, signal, layout))


def first_to_go(
    pods: Iterable[EvictablePod], stats: StatsOf, signal: Signal, layout: Layout
) -> EvictablePod | None:
    """Return the first pod of the ranking that can be evicted; None if all are critical."""
    movable = [pod for pod in pods if not pod.critical]
    standings = _standings(movable, stats, signal, layout)
    first = min(standings, key=order_for(signal).key, default=None)
    return None if first is None else first.pod


def steps(ranking: Iterable[Standing], signal: Signal) -> list[Step]:
    """Return for each pod but the last the criterion that ranks it ahead of the next one."""
    order = order_for(signal)
    return [
        Step(ahead.pod, behind.pod, order.separating(ahead, behind))
        for ahead, behind in pairwise(ranking)
    ]


def _standings(
    pods: Iterable[EvictablePod], stats: StatsOf, signal: Signal, layout: Layout
) -> list[Standing]:
    measure = _measure(signal, layout)
    return [measure(pod, stats.get(pod.uid)) for pod in pods]


Measure = Callable[[EvictablePod, PodStats | None], Standing]
Taken = Callable[[EvictablePod, PodStats], list[DiskUsage | None]]


def _measure(signal: Signal, layout: Layout) -> Measure:
    match RESOURCES[signal]:
        case Resource.MEMORY:
            return _memory
        case Resource.PIDS:
            return _processes
        case Resource.STORAGE:
            taken = _taking(layout.counted(signal))
            return lambda pod, stats: _storage(pod, stats, taken)
        case Resource.INODES:
            taken = _taking(layout.counted(signal))
            return lambda pod, stats: _inodes(pod, stats, taken)


def _memory(pod: EvictablePod, stats: PodStats | None) -> Standing:
    if stats is None:
        return Standing(pod, None)
    usage, request = stats.working_set or 0, pod.memory_request
    return Standing(pod, usage, request, usage - request)


def _processes(pod: EvictablePod, stats: PodStats | None) -> Standing:
    if stats is None:
        return Standing(pod, None)
    usage = stats.processes or 0
    return Standing(pod, usage, above=usage)


def _storage(pod: EvictablePod, stats: PodStats | None, taken: Taken) -> Standing:
    if stats is None:
        return Standing(pod, None)
    usage = sum([each.used or 0 for each in taken(pod, stats) if each is not None])
    return Standing(pod, usage, pod.storage_request, usage - pod.storage_request)


def _inodes(pod: EvictablePod, stats: PodStats | None, taken: Taken) -> Standing:
    if stats is None:
        return Standing(pod, None)
    usage = sum([each.inodes_used or 0 for each in taken(pod, stats) if each is not None])
    return Standing(pod, usage, 0, usage - pod.storage_request)


def _taking(parts: frozenset[Part]) -> Taken:
    """Return a function that lists the counted disk usages of a pod; None for unmeasured ones."""
    layers, logs, volumes = (each in parts for each in (Part.LAYERS, Part.LOGS, Part.VOLUMES))

    def taken(pod: EvictablePod, stats: PodStats) -> list[DiskUsage | None]:
        found: list[DiskUsage | None] = []
        if layers:
            found.extend([container.rootfs for container in stats.containers])
        if logs:
            found.extend([container.logs for container in stats.containers])
        if volumes:
            found.extend([_usage_of(each, stats) for each in pod.volumes if each.local])
        return found

    return taken


def _usage_of(volume: Volume, stats: PodStats) -> DiskUsage | None:
    """Return the usage of a volume; of several volumes with one name, the first in the stats."""
    for each in stats.volumes:
        if each.name == volume.name:
            return each.usage
    return None
