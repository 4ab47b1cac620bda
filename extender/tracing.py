"""The course of a call, moment by moment, and who is told of it.

Whoever knows something of a call notes it in its :class:`Course`: the HTTP handler when it came and
what was answered, the service when its turn came, what was decided, and on which state. That costs
a few readings of the clock and nothing else. Once the answer is on its way a :class:`Tracer`, if
there is one, may make of it what it likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol

from extender.verdict import Answer

PARENT_HEADERS: Final = ("traceparent", "tracestate")
"""What a caller sends that traces its own work (W3C Trace Context)."""


class Stage(Enum):
    """What a call goes through, in this order; the value is how people call it."""

    READING = "read the body"
    WAITING = "wait for the turn"
    DECIDING = "decide"
    ENCODING = "encode"


@dataclass(slots=True)
class Course:
    """What became of one call; moments are monotonic seconds.

    ``parent`` has those of PARENT_HEADERS that came. ``ends`` says when each stage ended that did:
    it began where the one before ended. ``case`` and ``substitute`` say what was the matter, and
    what stood in, where no decision could be answered.
    """

    parent: Mapping[str, str] = field(default_factory=dict)
    arrived: float = 0.0
    ends: dict[Stage, float] = field(default_factory=dict)
    pod: str = ""
    answer: Answer | None = None
    generation: int = 0
    case: str = ""
    substitute: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended, and when, in monotonic seconds.

    ``verb`` is "unknown" where there is none of the name. ``problem`` is what the caller was told
    in place of an answer.
    """

    verb: str
    request_id: str
    status: int
    problem: str
    ended: float


class Tracer(Protocol):
    """Is told of calls that have been answered."""

    def answered(self, course: Course, outcome: Outcome) -> None:
        """Take note of a call; must neither wait nor fail."""
        ...
