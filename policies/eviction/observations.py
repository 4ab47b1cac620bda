"""Signal observations: the amount available, the capacity, and the time of the measurement.

A signal is observed only if all stats it is made of were measured; thresholds of a signal without
an observation are skipped. The available memory already includes what the kernel can reclaim
(inactive_file), and excludes huge pages since 1.37, so neither is computed here.

    memory.available     available = limit - working set      capacity = available + working set
    pid.available        available = max - running            capacity = max

Sources: makeSignalObservations, thresholdsMet and thresholdsUpdatedStats in
pkg/kubelet/eviction/helpers.go; UpdateThreshold in memory_threshold_notifier_others.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from policies.eviction.signals import Signal
from policies.eviction.stats import FilesystemStats, MemoryStats, NodeStats
from policies.eviction.thresholds import Threshold
from policies.kubernetes.quantity import NANOS


@dataclass(frozen=True, slots=True)
class Observation:
    """The observation of a signal; ``time_ns`` is None if the time is unknown."""

    available: int
    capacity: int
    time_ns: int | None = None


Observations = Mapping[Signal, Observation]

BYTE_SIGNALS = frozenset(
    {Signal.MEMORY, Signal.ALLOCATABLE_MEMORY, Signal.NODE_FS, Signal.IMAGE_FS, Signal.CONTAINER_FS}
)
"""Signals that observe bytes; the others count inodes or processes."""


class IncompleteStatsError(ValueError):
    """The memory stats of a node lack a field that the kernel's notifier needs."""


def observe(node: NodeStats) -> dict[Signal, Observation]:
    """Return the observation of each signal; a signal that lacks a field is left out."""
    return dict(_observed(node))


def met_thresholds(thresholds: Iterable[Threshold], observations: Observations) -> list[Threshold]:
    """Return the thresholds whose value exceeds what is available, regardless of grace periods."""
    return _short_of(thresholds, observations, _required)


def unresolved_thresholds(
    thresholds: Iterable[Threshold], observations: Observations
) -> list[Threshold]:
    """Return the thresholds whose value plus minimum reclaim exceeds what is available."""
    return _short_of(thresholds, observations, _required_with_reclaim)


def updated_thresholds(
    thresholds: Iterable[Threshold], observations: Observations, last: Observations
) -> list[Threshold]:
    """Return the thresholds whose signals were measured since the ``last`` observations.

    Observations without a time count as new.
    """
    return [
        each
        for each in thresholds
        if each.signal in observations and _is_newer(observations[each.signal], last, each.signal)
    ]


def notification_usage(threshold: Threshold, memory: MemoryStats | None) -> int:
    """Return the usage in bytes at which the kernel is to notify of a threshold (cgroup v1).

    Usage includes what the kernel can reclaim, hence: capacity - threshold + (usage - working set).
    Raise IncompleteStatsError with the beginning of upstream's error.
    """
    if (
        memory is None
        or memory.usage is None
        or memory.working_set is None
        or memory.available is None
    ):
        raise IncompleteStatsError(
            "summary was incomplete.  Expected MemoryStats and all subfields to be non-nil"
        )
    capacity = memory.available + memory.working_set
    threshold_nanos = threshold.value.nanos_of(capacity)
    usage = (capacity + memory.usage - memory.working_set) * NANOS - threshold_nanos
    return -(-usage // NANOS)


RequiredAmount = Callable[[Threshold, int], int]


def _required(threshold: Threshold, capacity: int) -> int:
    return threshold.value.nanos_of(capacity)


def _required_with_reclaim(threshold: Threshold, capacity: int) -> int:
    more = threshold.min_reclaim
    return threshold.value.nanos_of(capacity) + (0 if more is None else more.nanos_of(capacity))


def _short_of(
    thresholds: Iterable[Threshold], observations: Observations, required: RequiredAmount
) -> list[Threshold]:
    short = []
    for each in thresholds:
        found = observations.get(each.signal)
        if found is not None and required(each, found.capacity) > found.available * NANOS:
            short.append(each)
    return short


def _is_newer(found: Observation, last: Observations, signal: Signal) -> bool:
    before = last.get(signal)
    if before is None or found.time_ns is None:
        return True
    return before.time_ns is None or found.time_ns > before.time_ns


def _observed(node: NodeStats) -> Iterator[tuple[Signal, Observation]]:
    yield from _memory(Signal.MEMORY, node.memory)
    yield from _memory(Signal.ALLOCATABLE_MEMORY, node.allocatable)
    yield from _filesystem(Signal.NODE_FS, Signal.NODE_FS_INODES, node.node_fs)
    yield from _filesystem(Signal.IMAGE_FS, Signal.IMAGE_FS_INODES, node.image_fs)
    yield from _filesystem(Signal.CONTAINER_FS, Signal.CONTAINER_FS_INODES, node.container_fs)
    pids = node.processes
    if pids is not None and pids.max_pids is not None and pids.running is not None:
        yield Signal.PIDS, Observation(pids.max_pids - pids.running, pids.max_pids, pids.time_ns)


def _memory(signal: Signal, stats: MemoryStats | None) -> Iterator[tuple[Signal, Observation]]:
    if stats is not None and stats.available is not None and stats.working_set is not None:
        capacity = stats.available + stats.working_set
        yield signal, Observation(stats.available, capacity, stats.time_ns)


def _filesystem(
    space: Signal, inodes: Signal, stats: FilesystemStats | None
) -> Iterator[tuple[Signal, Observation]]:
    if stats is None:
        return
    if stats.available is not None and stats.capacity is not None:
        yield space, Observation(stats.available, stats.capacity, stats.time_ns)
    if stats.inodes_free is not None and stats.inodes is not None:
        yield inodes, Observation(stats.inodes_free, stats.inodes, stats.time_ns)
