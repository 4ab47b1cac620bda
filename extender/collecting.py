"""The garbage collector in a process that knows a large cluster: all of it is looked at seldom.

A full collection looks at every object, and over a large cluster it holds up an answer for half a
second. What caches hold stays for long, and goes without help when it goes: nothing in it refers to
itself in a circle. So it is taken out of the collector's sight, for the whole process.

But a circle out of sight is garbage for ever once it is let go. Most things that are under way are
such circles: a connection and its transport, an error and the frames that it came through. So

- things are taken out of sight when nothing is under way, if such a moment comes soon;
- what has come since then is left in sight until there is so much of it that looking at it takes
  long: what ends before that is found, as garbage is everywhere;
- when half as much has been added as was out of sight at first, everything is brought back, looked
  at once, and taken out of sight again. That ends what was lost. Each new object has then paid for
  two old ones, however often the cluster is replaced.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from typing import Final

from extender.kube.clock import Clock

MANY: Final = 50_000
"""So many objects are looked at in ten to twenty milliseconds."""

LOOK_SECONDS: Final = 60.0
_PATIENCE_SECONDS: Final = 10.0
_GLANCE_SECONDS: Final = 0.05


def always() -> bool:
    """Be idle at any time."""
    return True


class OutOfSight:
    """What the collector does not look at: first all there is, then ``many`` objects at a time."""

    def __init__(self, many: int = MANY) -> None:
        self._many = many
        self._hide_all()

    def look(self) -> None:
        """Collect what is in sight; if much is left of it, take it out of sight, too."""
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
        """Collect everything, and take what is left out of sight."""
        gc.collect()
        gc.freeze()
        self._first, self._added = gc.get_freeze_count(), 0


async def spare_collections(
    synced: Callable[[], Awaitable[object]],
    clock: Clock,
    idle: Callable[[], bool] = always,
    look_seconds: float = LOOK_SECONDS,
) -> None:
    """Keep the collector from looking at the cluster again and again, until cancelled.

    Begins when ``synced`` returns: when the caches have had their first lists. ``idle`` tells
    whether nothing is under way now; who never is gets it done all the same. Every
    ``look_seconds`` it is seen to that about MANY objects at most are left to be looked at.
    """
    await synced()
    await _idle_moment(idle, clock)
    hidden = OutOfSight()
    while True:
        await clock.sleep(look_seconds)
        await _idle_moment(idle, clock)
        hidden.look()


async def _idle_moment(idle: Callable[[], bool], clock: Clock) -> None:
    """Return when nothing is under way, or when that has been waited for in vain."""
    latest = clock.monotonic() + _PATIENCE_SECONDS
    while not idle() and clock.monotonic() < latest:
        await clock.sleep(_GLANCE_SECONDS)
