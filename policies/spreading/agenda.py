"""Side effects of computing a status: when to requeue, and events to record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

NORMAL: Final = "Normal"
WARNING: Final = "Warning"


@dataclass(frozen=True, slots=True)
class Event:
    """An event about a WorkloadSpread; ``type`` is Normal or Warning."""

    type: str
    reason: str
    message: str


@dataclass(slots=True)
class SyncSideEffects:
    """The earliest time to requeue, and the events in order of occurrence, each once."""

    now_ns: int
    requeue_at_ns: int | None = None
    events: dict[Event, None] = field(default_factory=dict)

    def requeue_at(self, at_ns: int) -> None:
        """Record a time to requeue; times that are not in the future are ignored."""
        if at_ns > self.now_ns and (self.requeue_at_ns is None or at_ns < self.requeue_at_ns):
            self.requeue_at_ns = at_ns

    def record_event(self, event: Event) -> None:
        """Record an event."""
        self.events[event] = None
