"""Python's garbage collector in a process that caches a large cluster: rare full collections.

A full collection visits every object; over a large cluster it delays an answer by half a second.
Cached objects live long and contain no reference cycles, so reference counting frees them. They are
therefore frozen (``gc.freeze``) for the whole process.

A frozen reference cycle is never freed. Most objects of a request in progress are such cycles: a
connection and its transport, an error and its frames. So

- objects are frozen when no request is in progress, if that happens soon;
- newer objects stay unfrozen until they are so many that a collection takes long; cycles that end
  before that are collected as usual;
- when half as many objects have been added as were frozen at first, everything is unfrozen,
  collected once, and frozen again, which frees frozen cycles. The cost is two old objects visited
  for each new one, however often the cluster is replaced.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from typing import Final

from extender.kube.clock import Clock

MANY: Final = 50_000
"""A collection visits this many objects in ten to twenty milliseconds."""

LOOK_SECONDS: Final = 60.0
_PATIENCE_SECONDS: Final = 10.0
_GLANCE_SECONDS: Final = 0.05


def always() -> bool:
    """Return True: the process counts as idle at any time."""
    return True


class OutOfSight:
    """Frozen objects: first all that exist, then at least ``threshold`` more at a time."""

    def __init__(self, many: int = MANY) -> None:
        self._many = many
        self._hide_all()

    def look(self) -> None:
        """Collect the objects that are not frozen; freeze the rest if there are ``threshold``."""
        gc.collect()
        come = len(gc.get_objects())
        if come < self._many:
            return
        if 2 * (self._added + come) < self._first:
            self._added += come
            gc.freeze()
            return
        gc.unfreeze()
        self._hide_all()

    def _hide_all(self) -> None:
        """Collect everything, and freeze the rest."""
        gc.collect()
        gc.freeze()
        self._first, self._added = gc.get_freeze_count(), 0


async def spare_collections(
    synced: Callable[[], Awaitable[object]],
    clock: Clock,
    idle: Callable[[], bool] = always,
    look_seconds: float = LOOK_SECONDS,
) -> None:
    """Keep the objects of the caches out of garbage collections, until cancelled.

    Start when ``synced`` returns, which is when the caches have their first lists. ``is_idle``
    returns whether no request is in progress; if it stays False, objects are frozen after a
    timeout. Every ``interval_seconds`` objects are frozen if FREEZE_THRESHOLD or more are not.
    """
    await synced()
    await _idle_moment(idle, clock)
    hidden = OutOfSight()
    while True:
        await clock.sleep(look_seconds)
        await _idle_moment(idle, clock)
        hidden.look()


async def _idle_moment(idle: Callable[[], bool], clock: Clock) -> None:
    """Return when no request is in progress, or after ten seconds."""
    latest = clock.monotonic() + _PATIENCE_SECONDS
    while not idle() and clock.monotonic() < latest:
        await clock.sleep(_GLANCE_SECONDS)
