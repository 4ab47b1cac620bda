"""The context and the result of every verb."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import Candidate, PreemptionDecision
from policies.preemption.engine import Engine
from policies.preemption.explanation import NO_ACTIONS, GuardActions
from policies.preemption.filtering.status import FilterDecision
from policies.preemption.policy import SchedulerRules
from policies.preemption.time_limit import HasTimeLeft, no_deadline


class Search(Enum):
    """Which nodes a preempt call considers: the candidates of the request, or all known ones."""

    OFFERED = "offered"
    CLUSTER = "cluster"


class FallbackKind(Enum):
    """A fallback answer: an error, a refusal of every node, or the request passed through."""

    ERROR = "error"
    VETO = "veto"
    ECHO = "echo"


@dataclass(frozen=True, slots=True)
class CallContext:
    """The input of a decision: an immutable snapshot, an engine, and the time that is left.

    ``pending_pods`` are the pods without a node, by UID; the snapshot has only the nominated ones.
    """

    snapshot: Snapshot
    engine: Engine
    search: Search = Search.OFFERED
    has_time_left: HasTimeLeft = no_deadline
    pending_pods: Mapping[str, Pod] = field(default_factory=dict)

    @property
    def rules(self) -> SchedulerRules:
        """The rules of the engine."""
        return self.engine.rules


@dataclass(frozen=True, slots=True)
class VerbResult:
    """The encoder of the answer, its decision, and what else is recorded of it.

    ``named_candidate`` is the candidate that the answer names. ``notes`` are lines for the decision
    log: entries left out, answers deferred. ``guards`` are found after the answer is sent.
    """

    encode: Callable[[], bytes]
    decision: FilterDecision | PreemptionDecision
    named_candidate: Candidate | None = None
    notes: tuple[str, ...] = ()
    guards: GuardActions = NO_ACTIONS

    @property
    def body(self) -> bytes:
        """The body of the answer, encoded anew."""
        return self.encode()


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """The circumstances of an answer: time, request, and snapshot.

    ``at_ns`` is in nanoseconds since the epoch. ``pods_version`` is the resource version of the
    newest known change to a pod; ``seconds`` is the duration of the decision.
    """

    at_ns: int
    request_id: str
    verb: str
    generation: int
    pods_version: str
    seconds: float
