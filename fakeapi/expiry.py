"""Event TTL: Events are deleted one hour after their last write.

As with etcd leases, the store deletes them directly: there is no request, and no admission or
finalizer delays the deletion. Events that exist at the start, or are restored from a snapshot, have
the full hour.

Source: kube-apiserver's ``--event-ttl``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from extender.kube.clock import Clock
from fakeapi.kinds.builtin import EVENTS
from fakeapi.store import ExpiredError, Store

TTL_SECONDS: Final = 3600.0


class EventTTLController:
    """Deletes the Events of one store when their TTL is over."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._due: deque[tuple[float, str, int]] = deque()
        self._read = 0
        self._written = asyncio.Event()

    async def run(self) -> None:
        """Delete expired Events until cancelled."""
        stop = self._store.listen(EVENTS, self._record_writes)
        try:
            self._list_all()
            while True:
                await self._wait()
                self._delete_expired()
        finally:
            stop()

    async def _wait(self) -> None:
        """Wait until the next Event is due or, if there is none, until one is written."""
        if self._due:
            await self._clock.sleep(self._due[0][0] - self._clock.monotonic())
        else:
            self._written.clear()
            await self._written.wait()

    def _list_all(self) -> None:
        due = self._clock.monotonic() + TTL_SECONDS
        self._read = self._store.version
        self._due = deque((due, e.key, e.version) for e in self._store.entries(EVENTS))

    def _record_writes(self) -> None:
        """Record the latest writes; list all Events again if the store was restored."""
        try:
            events = self._store.since(EVENTS, self._read)
        except ExpiredError:
            self._list_all()
            events = ()
        due = self._clock.monotonic() + TTL_SECONDS
        for event in events:
            if event.type != "DELETED":
                self._due.append((due, event.entry.key, event.version))
            self._read = event.version
        self._written.set()

    def _delete_expired(self) -> None:
        now = self._clock.monotonic()
        while self._due and self._due[0][0] <= now:
            _, key, version = self._due.popleft()
            entry = self._store.get(EVENTS, key)
            if entry is not None and entry.version == version:
                self._store.delete(EVENTS, key, entry.document(), version)
