"""The notification loop: waits for notifiers and for a timeout, whichever comes first.

The kernel signals memory events as priority data (POLLPRI), which asyncio does not poll for. A
nested epoll set in asyncio would lose notifications: a PSI trigger is ready only for the first
poll, which would be that of the outer set. Therefore a thread polls, and notifies the event loop.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Lock, Thread

from extender.eviction.memory.cgroups import Cgroup, CgroupVersion
from extender.eviction.memory.notifiers import (
    EventsNotifier,
    Notifier,
    NotifierError,
    PsiNotifier,
    ThresholdNotifier,
)
from extender.kube.rest.clock import Clock


class NotifierListener:
    """Polls notifiers from its construction until it is closed; requires a running event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()
        self._end = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._end, select.EPOLLIN)
        self._notifiers: dict[int, Notifier] = {}
        self._lock = Lock()
        self._notifications: list[str] = []
        self._notified = asyncio.Event()
        self._thread = Thread(target=self._poll, name="memory", daemon=True)
        self._thread.start()

    def add(self, notifier: Notifier) -> None:
        """Add a notifier, and take over closing it. Raise NotifierError."""
        with self._lock:
            try:
                self._epoll.register(notifier.fileno(), notifier.mask)
            except OSError as error:
                notifier.close()
                raise NotifierError(f"{notifier}: cannot be polled: {error.strerror}") from None
            self._notifiers[notifier.fileno()] = notifier

    def remove(self, notifier: Notifier) -> None:
        """Remove and close a notifier, if it is still open."""
        with self._lock:
            self._remove(notifier)

    async def wait(self, seconds: float) -> list[str]:
        """Return notifications as soon as there are any, or an empty list after ``seconds``."""
        timeout = asyncio.create_task(self._clock.sleep(seconds))
        notified = asyncio.create_task(self._notified.wait())
        try:
            await asyncio.wait((timeout, notified), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timeout.cancel()
            notified.cancel()
        texts, self._notifications = self._notifications, []
        self._notified.clear()
        return list(dict.fromkeys(texts))

    def close(self) -> None:
        """Stop polling, and close every notifier."""
        os.eventfd_write(self._end, 1)
        self._thread.join()
        for notifier in list(self._notifiers.values()):
            self.remove(notifier)
        self._epoll.close()
        os.close(self._end)

    def _poll(self) -> None:
        """Poll in a thread until the end is signaled."""
        while True:
            ready = self._epoll.poll()
            with self._lock:
                texts = [text for file, events in ready if (text := self._read(file, events))]
            if texts:
                self._loop.call_soon_threadsafe(self._deliver, texts)
            if any(file == self._end for file, _ in ready):
                return

    def _read(self, file: int, events: int) -> str:
        notifier = self._notifiers.get(file)
        if notifier is None:
            return ""  # it was removed in the meantime
        try:
            if events & notifier.mask:
                return notifier.read_notification()
        except OSError as error:
            problem = error.strerror
        else:
            problem = "the notifier no longer exists"
        self._remove(notifier)
        return f"{notifier}: {problem}"

    def _remove(self, notifier: Notifier) -> None:
        if self._notifiers.get(notifier.fileno()) is notifier:
            del self._notifiers[notifier.fileno()]
            self._epoll.unregister(notifier.fileno())
            notifier.close()

    def _deliver(self, texts: Sequence[str]) -> None:
        self._notifications.extend(texts)
        self._notified.set()


class CgroupNotifiers:
    """All notifiers of one group; its thresholds are registered again when the usage moves.

    ``unavailable`` lists the notifiers that are unavailable, each in one line.
    """

    def __init__(self, listener: NotifierListener, proc: Path, group: Cgroup | None) -> None:
        self.unavailable: list[str] = []
        self._listener = listener
        self._group = group
        self._thresholds: list[Notifier] = []
        self._levels: Sequence[int] = ()
        self._try(partial(PsiNotifier, _pressure_of(proc, group)))
        if group is not None and group.version is CgroupVersion.TWO:
            events = group.directory / "memory.events"
            if events.exists():  # the root group has none
                self._try(partial(EventsNotifier, events))

    def set_thresholds(self, levels: Sequence[int]) -> None:
        """Set the usages in bytes whose crossing is notified, where that is supported.

        The reclaimable memory changes, and with it the usage at which a threshold is met; so call
        this after each measurement.
        """
        group = self._group
        if group is None or group.version is not CgroupVersion.ONE or levels == self._levels:
            return
        self._levels = levels
        for notifier in self._thresholds:
            self._listener.remove(notifier)
        kept = (self._try(partial(ThresholdNotifier, group.directory, at)) for at in levels)
        self._thresholds = [notifier for notifier in kept if notifier is not None]

    def _try(self, make: Callable[[], Notifier]) -> Notifier | None:
        try:
            notifier = make()
            self._listener.add(notifier)
        except NotifierError as error:
            if str(error) not in self.unavailable:
                self.unavailable.append(str(error))
            return None
        return notifier


def _pressure_of(proc: Path, group: Cgroup | None) -> Path:
    """Return the PSI file of a group, or the machine's if it has none."""
    own = None if group is None else group.directory / "memory.pressure"
    return own if own is not None and own.exists() else proc / "pressure/memory"
