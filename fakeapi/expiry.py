"""Events go an hour after they were last written.

The store does this by itself, as etcd does with its leases, so nobody asks for it and nothing holds
it up. Objects that are there from the start, or come back with a snapshot, get a full hour.

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


class EventExpiry:
    """Ends the Events of one store as their time comes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._due: deque[tuple[float, str, int]] = deque()
        self._read = 0
        self._written = asyncio.Event()

    async def run(self) -> None:
        """End Events until cancelled."""
        stop = self._store.listen(EVENTS, self._note)
        try:
            self._begin()
            while True:
                await self._wait()
                self._end_due()
        finally:
            stop()

    async def _wait(self) -> None:
        """Wait until the next Event is due or, if there is none, until one is written."""
        if self._due:
            await self._clock.sleep(self._due[0][0] - self._clock.monotonic())
        else:
            self._written.clear()
            await self._written.wait()

    def _begin(self) -> None:
        due = self._clock.monotonic() + TTL_SECONDS
        self._read = self._store.version
        self._due = deque((due, e.key, e.version) for e in self._store.entries(EVENTS))

    def _note(self) -> None:
        """Note what was just written; a store that was restored is looked at anew."""
        try:
            events = self._store.since(EVENTS, self._read)
        except ExpiredError:
            self._begin()
            events = ()
        due = self._clock.monotonic() + TTL_SECONDS
        for event in events:
            if event.type != "DELETED":
                self._due.append((due, event.entry.key, event.version))
            self._read = event.version
        self._written.set()

    def _end_due(self) -> None:
        now = self._clock.monotonic()
        while self._due and self._due[0][0] <= now:
            _, key, version = self._due.popleft()
            entry = self._store.get(EVENTS, key)
            if entry is not None and entry.version == version:
                self._store.delete(EVENTS, key, entry.document(), version)
