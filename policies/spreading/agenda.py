"""What comes up while a status is worked out: when to look again, and what to tell people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

NORMAL: Final = "Normal"
WARNING: Final = "Warning"


@dataclass(frozen=True, slots=True)
class Event:
    """What is told of a WorkloadSpread; ``type`` is Normal or Warning."""

    type: str
    reason: str
    message: str


@dataclass(slots=True)
class Agenda:
    """The earliest time to look again, and events in the order in which they came up, each once."""

    now_ns: int
    due_ns: int | None = None
    events: dict[Event, None] = field(default_factory=dict)

    def look_again(self, at_ns: int) -> None:
        """Note a time; those that are not in the future are none."""
        if at_ns > self.now_ns and (self.due_ns is None or at_ns < self.due_ns):
            self.due_ns = at_ns

    def tell(self, event: Event) -> None:
        """Note an event."""
        self.events[event] = None
