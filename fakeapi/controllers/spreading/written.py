"""What this process has written of WorkloadSpreads, which its copies may not show yet.

The webhooks and the controller write the same status. Within one process they take turns, one at a
time for each WorkloadSpread, and each begins with the newest state that any of them has written or
the copies show. Between processes nothing but the resourceVersion keeps order: who comes second is
refused, and begins anew.

Source: openkruise/kruise pkg/util (GlobalKeyedMutex, GlobalCache).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from extender.kube.workloadspread.spreads import WrittenSpread  # who needs it, loads it


class Written:
    """The newest states of WorkloadSpreads that this process has written, and whose turn it is."""

    def __init__(self) -> None:
        self._newest: dict[str, WrittenSpread] = {}
        self._own: dict[str, int] = {}
        self._overtaken: dict[str, int] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._newest)

    def turn(self, uid: str) -> asyncio.Lock:
        """Return the lock to hold while the WorkloadSpread of a UID is read, changed and written."""
        lock = self._turns.get(uid)
        if lock is None:
            lock = self._turns[uid] = asyncio.Lock()
        return lock

    def newest(self, seen: WrittenSpread) -> WrittenSpread:
        """Return the newer of what a copy shows and what has been written."""
        kept = self._newest.get(seen.spread.uid)
        return seen if kept is None or not older(seen, kept) else kept

    def keep(self, written: WrittenSpread) -> None:
        """Remember what the server gave as the outcome of a write."""
        uid = written.spread.uid
        self._newest[uid] = self.newest(written)
        self._own[uid] = max(_version(written), self._own.get(uid, 0))

    def learn(self, read: WrittenSpread) -> None:
        """Remember what the server has shown, which others have written."""
        self._newest[read.spread.uid] = self.newest(read)

    def is_foreign(self, seen: WrittenSpread) -> bool:
        """Return whether others have written since this process has, if it ever has."""
        own = self._own.get(seen.spread.uid)
        return own is not None and _version(seen) > own

    def overtaken(self, base: WrittenSpread) -> None:
        """Note that there is a newer state than this one, though nobody here has seen it."""
        self._overtaken[base.spread.uid] = _version(base)

    def is_overtaken(self, known: WrittenSpread) -> bool:
        """Return whether a state is known not to be the newest any more."""
        return _version(known) <= self._overtaken.get(known.spread.uid, -1)

    def shown(self, seen: WrittenSpread) -> None:
        """Forget what is no newer than what a copy shows by now."""
        if self.newest(seen) is seen:
            self._newest.pop(seen.spread.uid, None)

    def moved(self, old: WrittenSpread, seen: WrittenSpread) -> None:
        """Forget likewise when a copy changes; all, if the server has been turned back."""
        if older(seen, old):
            self.forget(seen.spread.uid)
        self.shown(seen)

    def forget(self, uid: str) -> None:
        """Forget a WorkloadSpread that has gone."""
        self._newest.pop(uid, None)
        self._own.pop(uid, None)
        self._overtaken.pop(uid, None)


def older(one: WrittenSpread, other: WrittenSpread) -> bool:
    """Return whether one state is older than another of the same WorkloadSpread."""
    return _version(one) < _version(other)


def _version(written: WrittenSpread) -> int:
    """Return a resourceVersion as a number; what is none counts as the oldest."""
    text = written.spread.resource_version
    return int(text) if text.isascii() and text.isdigit() else 0
