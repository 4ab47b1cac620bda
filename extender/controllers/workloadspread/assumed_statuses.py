"""Status writes of WorkloadSpreads that the caches of this process may not show yet.

The webhooks and the controller write the same status. Within one process they hold one lock per
WorkloadSpread, and each starts from the newest version that any of them has written or the caches
show. Between processes only the resourceVersion orders writes: the second writer gets a conflict
and retries.

Source: openkruise/kruise pkg/util (GlobalKeyedMutex, GlobalCache).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from policies.kubernetes.integers import parse_integer

if TYPE_CHECKING:
    from extender.kube.workloadspread.spreads import StoredWorkloadSpread


class AssumedStatuses:
    """Keeps the newest WorkloadSpreads that this process has written, and their write locks."""

    def __init__(self) -> None:
        self._newest: dict[str, StoredWorkloadSpread] = {}
        self._own: dict[str, int] = {}
        self._outdated: dict[str, int] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._newest)

    def write_lock(self, uid: str) -> asyncio.Lock:
        """Return the lock to hold while a WorkloadSpread is read, changed and written."""
        lock = self._locks.get(uid)
        if lock is None:
            lock = self._locks[uid] = asyncio.Lock()
        return lock

    def newest(self, cached: StoredWorkloadSpread) -> StoredWorkloadSpread:
        """Return the newer of a cached version and the version last written or read."""
        kept = self._newest.get(cached.spread.uid)
        return cached if kept is None or not is_older(cached, kept) else kept

    def record_write(self, written: StoredWorkloadSpread) -> None:
        """Record the server's response to a write."""
        uid = written.spread.uid
        self._newest[uid] = self.newest(written)
        self._own[uid] = max(_version(written), self._own.get(uid, 0))

    def record_read(self, read: StoredWorkloadSpread) -> None:
        """Record a version read from the server, which another process may have written."""
        self._newest[read.spread.uid] = self.newest(read)

    def is_written_by_others(self, cached: StoredWorkloadSpread) -> bool:
        """Return whether another process has written after this one, if this one has written."""
        own = self._own.get(cached.spread.uid)
        return own is not None and _version(cached) > own

    def record_conflict(self, base: StoredWorkloadSpread) -> None:
        """Record that a newer version exists on the server, which has not been read yet."""
        self._outdated[base.spread.uid] = _version(base)

    def is_outdated(self, known: StoredWorkloadSpread) -> bool:
        """Return whether a version is known to be outdated."""
        return _version(known) <= self._outdated.get(known.spread.uid, -1)

    def observe(self, cached: StoredWorkloadSpread) -> None:
        """Forget a version that is not newer than the one in the cache."""
        if self.newest(cached) is cached:
            self._newest.pop(cached.spread.uid, None)

    def observe_update(self, old: StoredWorkloadSpread, cached: StoredWorkloadSpread) -> None:
        """Forget versions that the cache shows, or all if the resourceVersion has decreased."""
        if is_older(cached, old):
            self.forget(cached.spread.uid)
        self.observe(cached)

    def forget(self, uid: str) -> None:
        """Forget a deleted WorkloadSpread."""
        self._newest.pop(uid, None)
        self._own.pop(uid, None)
        self._outdated.pop(uid, None)


def is_older(one: StoredWorkloadSpread, other: StoredWorkloadSpread) -> bool:
    """Return whether a version is older than another of the same WorkloadSpread."""
    return _version(one) < _version(other)


def _version(written: StoredWorkloadSpread) -> int:
    """Return a resourceVersion as a number; 0 if it is not a number."""
    return parse_integer(written.spread.resource_version) or 0
