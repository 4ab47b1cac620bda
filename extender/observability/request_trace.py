"""The request trace of a call: the times of its steps, its decision, and its result.

The components that handle a call record in its :class:`RequestTrace`: the HTTP handler the arrival
and the response, the service the time in the queue, the decision and the snapshot. The only cost is
a few clock readings. After the answer is sent, the trace is passed to the :class:`Tracer`, if there
is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol

from extender.protocol.verb_context import VerbResult

PARENT_HEADERS: Final = ("traceparent", "tracestate")
"""The headers of the caller's trace (W3C Trace Context)."""


class TraceStep(Enum):
    """A step of a call, in this order; the value is the name of its span."""

    READING = "read the body"
    WAITING = "wait for the turn"
    DECIDING = "decide"
    ENCODING = "encode"


@dataclass(slots=True)
class RequestTrace:
    """The trace of one call; times are monotonic seconds.

    ``parent`` has the received headers of PARENT_HEADERS. ``step_ends`` has the end of each
    completed step; a step begins when the previous one ends. ``fallback_reason`` and ``fallback``
    are set if no decision could be made.
    """

    parent: Mapping[str, str] = field(default_factory=dict)
    arrived: float = 0.0
    step_ends: dict[TraceStep, float] = field(default_factory=dict)
    pod: str = ""
    answer: VerbResult | None = None
    generation: int = 0
    fallback_reason: str = ""
    fallback: str = ""


@dataclass(frozen=True, slots=True)
class RequestResult:
    """The result of a call; ``ended`` is in monotonic seconds.

    ``verb`` is "unknown" for an unknown path. ``problem`` is the text of an error response.
    """

    verb: str
    request_id: str
    status: int
    problem: str
    ended: float


class Tracer(Protocol):
    """Receives the traces of answered calls."""

    def record(self, trace: RequestTrace, result: RequestResult) -> None:
        """Record an answered call; must neither block nor raise."""
        ...
