"""What every verb is given and gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from policies.decision import Candidate, FilterDecision, PreemptionDecision
from policies.engine import Engine
from policies.model import Snapshot
from policies.patience import Patience, endless
from policies.rules import Rules


class Search(Enum):
    """Which nodes a preempt call considers: those that were offered, or all that are known."""

    OFFERED = "offered"
    CLUSTER = "cluster"


class Substitute(Enum):
    """What stands in for a decision: an error, a refusal of everything, or the question itself."""

    ERROR = "error"
    VETO = "veto"
    ECHO = "echo"


@dataclass(frozen=True, slots=True)
class Situation:
    """What a verb decides on, and with: one immutable moment, an engine, and how much time."""

    snapshot: Snapshot
    engine: Engine
    search: Search = Search.OFFERED
    patience: Patience = endless

    @property
    def rules(self) -> Rules:
        """What is decided by."""
        return self.engine.rules


@dataclass(frozen=True, slots=True)
class Answer:
    """How to write what is sent, the decision behind it, and what the decision doesn't say.

    ``promised`` is the candidate that kube-scheduler is told to take. ``notes`` are lines for the
    journal: entries left out, answers deferred.
    """

    encode: Callable[[], bytes]
    decision: FilterDecision | PreemptionDecision
    promised: Candidate | None = None
    notes: tuple[str, ...] = ()

    @property
    def body(self) -> bytes:
        """What is sent, written anew."""
        return self.encode()


@dataclass(frozen=True, slots=True)
class Circumstances:
    """When and how an answer came about.

    ``pods_version`` is of the newest change to a pod that was known; ``seconds`` is what deciding
    took.
    """

    at: str
    request_id: str
    verb: str
    generation: int
    pods_version: str
    seconds: float
