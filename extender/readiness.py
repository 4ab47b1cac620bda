"""Whether answers are safe now, and what to tell those who ask.

Ready is who has every cache's first list, has heard from the API server on every watch of late, and
is not about to stop. A watch that carries no changes carries bookmarks, and is opened anew when it
carries neither; so silence means that the cluster may be another one by now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from extender.kube.clock import Clock


class Feed(Protocol):
    """What keeps one kind of object current: an informer, whatever it decodes."""

    async def run(self) -> None:
        """Follow the server until cancelled."""
        ...

    async def wait_settled(self) -> None:
        """Return once the first list has arrived, or need not be waited for."""
        ...

    @property
    def settled(self) -> bool:
        """Whether the first list has arrived, or need not be waited for."""
        ...

    @property
    def synced(self) -> bool:
        """Whether the first list has arrived."""
        ...

    @property
    def resource_version(self) -> str:
        """The version that the copy has reached, "" before the first list."""
        ...

    @property
    def last_heard(self) -> float:
        """When the server was last heard of, in the clock's monotonic seconds."""
        ...


@dataclass(slots=True)
class Readiness:
    """``feeds`` by kind; ``alarms`` give what somebody should see to, "" for nothing."""

    clock: Clock
    feeds: Mapping[str, Feed] = field(default_factory=dict)
    stale_seconds: float = 180.0
    alarms: list[Callable[[], str]] = field(default_factory=list)
    stopping: bool = False

    def waiting_for(self) -> list[str]:
        """Name the kinds of objects whose first list has not arrived."""
        return [kind for kind, feed in self.feeds.items() if not feed.settled]

    def silent(self) -> list[str]:
        """Name the kinds of objects of which the server has said nothing for too long."""
        oldest = self.clock.monotonic() - self.stale_seconds
        return [
            kind for kind, feed in self.feeds.items() if feed.synced and feed.last_heard < oldest
        ]

    def ages(self) -> Mapping[str, float]:
        """Return by kind how long ago the server was last heard of, in seconds."""
        now = self.clock.monotonic()
        synced = ((kind, feed) for kind, feed in self.feeds.items() if feed.synced)
        return {kind: max(0.0, now - feed.last_heard) for kind, feed in synced}

    def problem(self) -> str:
        """Say why not to be asked now, "" if ready."""
        if self.stopping:
            return "shutting down"
        missing, silent = self.waiting_for(), self.silent()
        if missing:
            return f"waiting for {', '.join(missing)}"
        return f"nothing heard of {', '.join(silent)}" if silent else ""

    def lines(self) -> Iterator[str]:
        """Say of each kind how it stands, and what somebody should see to."""
        silent, ages = frozenset(self.silent()), self.ages()
        for kind, feed in self.feeds.items():
            if kind in silent:
                yield f"[-] {kind} nothing heard for {ages[kind]:.0f} s"
            else:
                yield f"[{'+' if feed.settled else '-'}] {kind} {_condition(feed)}"
        yield from (f"[!] {alarm}" for alarm in (each() for each in self.alarms) if alarm)


def _condition(feed: Feed) -> str:
    if feed.synced:
        return "synced"
    return (
        "refused by the server: pods that need it are not judged" if feed.settled else "not synced"
    )
