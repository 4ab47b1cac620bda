"""Python's garbage collector in a process that caches a large cluster: rare full collections.

A full collection visits every object; over a large cluster it delays an answer by half a second.
Cached objects live long and contain no reference cycles, so reference counting frees them. They are
therefore frozen (``gc.freeze``) for the whole process.

A frozen reference cycle is never freed. Most objects of a request in progress are such cycles: a
connection and its transport, an error and its frames. So

- objects are frozen when no request is in progress, if that happens soon;
- newer objects stay unfrozen until they are so many that a collection takes long; cycles that end
  before that are collected as usual;
- when half as many objects have been added as were frozen at first (or another share), everything
  is unfrozen, collected once, and frozen again, which frees frozen cycles. The cost is two old
  objects visited for each new one, however often the cluster is replaced.

The allocator keeps what was freed. After each collection it returns free memory to the operating
system, so that the process does not stay as large as after a burst of large requests.
"""

from __future__ import annotations

import ctypes
import gc
from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from extender.kube.rest.clock import Clock

FREEZE_THRESHOLD: Final = 50_000
"""A collection visits this many objects in ten to twenty milliseconds."""

FREEZE_INTERVAL_SECONDS: Final = 60.0
ADDED_SHARE: Final = 0.5
_IDLE_TIMEOUT_SECONDS: Final = 10.0
_IDLE_POLL_SECONDS: Final = 0.05


_PAUSE_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class CollectionPauses(Collector):
    """The metric of garbage collections, during which nothing else runs.

    A collection may begin while a metric of the client library is locked, so these are plain
    numbers. ``monotonic`` returns seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._begun = 0.0
        self._seconds = 0.0
        self._counts = [0] * (len(_PAUSE_BUCKETS) + 1)

    def observe(self, phase: str, _info: Mapping[str, int]) -> None:
        """Observe the start or the end of a collection, as a function of ``gc.callbacks``."""
        if phase == "start":
            self._begun = self._monotonic()
            return
        seconds = self._monotonic() - self._begun
        self._seconds += seconds
        self._counts[bisect_left(_PAUSE_BUCKETS, seconds)] += 1

    def collect(self) -> Iterator[Metric]:
        """Yield the histogram of pauses."""
        bounds = [*map(str, _PAUSE_BUCKETS), "+Inf"]
        yield HistogramMetricFamily(
            "python_gc_pause_seconds",
            "Pauses by garbage collections",
            buckets=list(zip(bounds, accumulate(self._counts), strict=True)),
            sum_value=self._seconds,
        )


@asynccontextmanager
async def observed_collections(
    registry: CollectorRegistry, monotonic: Callable[[], float]
) -> AsyncIterator[None]:
    """Count the garbage collections of the process in a metric while the block runs."""
    pauses = CollectionPauses(monotonic)
    registry.register(pauses)
    gc.callbacks.append(pauses.observe)
    try:
        yield
    finally:
        gc.callbacks.remove(pauses.observe)


def always_idle() -> bool:
    """Return True: the process counts as idle at any time."""
    return True


class FrozenObjects:
    """Frozen objects: first all that exist, then at least ``threshold`` more at a time.

    All are unfrozen and collected once ``share`` times as many have been added as at first.
    """

    def __init__(self, threshold: int = FREEZE_THRESHOLD, share: float = ADDED_SHARE) -> None:
        self._threshold = threshold
        self._share = share
        self._freeze_all()

    def collect(self) -> None:
        """Collect the objects that are not frozen; freeze the rest if there are ``threshold``."""
        gc.collect()
        added = len(gc.get_objects())
        if added < self._threshold:
            return
        if self._added + added < self._share * self._first:
            self._added += added
            gc.freeze()
            return
        gc.unfreeze()
        self._freeze_all()

    def _freeze_all(self) -> None:
        """Collect everything, and freeze the rest."""
        gc.collect()
        gc.freeze()
        self._first, self._added = gc.get_freeze_count(), 0


async def limit_collections(
    synced: Callable[[], Awaitable[object]],
    clock: Clock,
    is_idle: Callable[[], bool] = always_idle,
    interval_seconds: float = FREEZE_INTERVAL_SECONDS,
    share: float = ADDED_SHARE,
) -> None:
    """Keep the objects of the caches out of garbage collections, until cancelled.

    Start when ``synced`` returns, which is when the caches have their first lists. ``is_idle``
    returns whether no request is in progress; if it stays False, objects are frozen after a
    timeout. Every ``interval_seconds`` objects are frozen if FREEZE_THRESHOLD or more are not;
    ``share`` is that of :class:`FrozenObjects`.
    """
    await synced()
    await _wait_idle(is_idle, clock)
    frozen = FrozenObjects(share=share)
    while True:
        await clock.sleep(interval_seconds)
        await _wait_idle(is_idle, clock)
        frozen.collect()
        return_free_memory()


def return_free_memory() -> None:
    """Return memory that the allocator keeps to the operating system, where the C library can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc; other libraries keep less
    if trim is not None:
        trim(0)


async def _wait_idle(is_idle: Callable[[], bool], clock: Clock) -> None:
    """Return when no request is in progress, or after ten seconds."""
    latest = clock.monotonic() + _IDLE_TIMEOUT_SECONDS
    while not is_idle() and clock.monotonic() < latest:
        await clock.sleep(_IDLE_POLL_SECONDS)
