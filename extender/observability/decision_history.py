"""The decision history: the latest decisions, served as ``GET /decisions``.

A record has the request, the answer, and its reasons: the deciding criterion, the reprieved pods,
the count of each reason, and the notes. It consists of copied strings and numbers, so it keeps no
old snapshot alive. Nothing else of a pod's spec is kept. What a caller has sent is kept within the
limits of a log line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from extender.kube.decoders.object_meta import format_time
from extender.observability.decision_log import ReasonCounts
from extender.protocol.verb_context import AnswerContext, VerbResult
from extender.terminal.log_limits import shortened, shortened_list
from policies.kubernetes.snapshot import Pod
from policies.preemption.filtering.status import FilterDecision

_MAX_REASONS: Final = 20


class PodReference(msgspec.Struct, rename="camel", frozen=True):
    """The identity and the priority of a pod."""

    namespace: str
    name: str
    uid: str
    priority: int

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class DecisionRecord(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """One answer; times are RFC 3339, durations milliseconds.

    ``pods_version`` is the resource version of the newest change to a pod that was known at the
    decision. ``fits`` is None for preemption. ``rejected`` counts nodes by reason. ``degraded`` is
    set for a fallback: its reason and its kind. ``protected``, ``refused_attempt`` and
    ``refused_nodes`` are the guards that acted: see GuardActions. ``search`` tells how far the
    cheapest victims were searched for.
    """

    at: str
    request_id: str = msgspec.field(name="requestID")
    verb: str
    pod: PodReference
    took_milliseconds: float = 0.0
    generation: int = 0
    pods_version: str = ""
    fits: int | None = None
    node: str | None = None
    victims: Sequence[PodReference] = ()
    spared: Sequence[PodReference] = ()
    num_pdb_violations: int = msgspec.field(default=0, name="numPDBViolations")
    decided_by: str | None = None
    candidates: int = 0
    untried: int = 0
    search: str = ""
    rejected: Mapping[str, int] = {}
    protected: Mapping[str, int] = {}
    refused_attempt: str = ""
    refused_nodes: Mapping[str, int] = {}
    message: str = ""
    notes: Sequence[str] = ()
    degraded: str = ""


class DecisionHistory:
    """The latest ``size`` records."""

    def __init__(self, size: int = 256) -> None:
        self._records: deque[DecisionRecord] = deque(maxlen=size)

    def add(self, record: DecisionRecord) -> None:
        """Add a record, and drop the oldest if there are too many."""
        self._records.append(record)

    def document(
        self, limit: int | None = None, pod: str | None = None, verb: str | None = None
    ) -> bytes:
        """Return the newest ``limit`` records as JSON, newest first.

        ``pod`` (namespace/name) and ``verb`` select records, if given. If they select none, a
        message says what is kept.
        """
        chosen = [
            each
            for each in reversed(self._records)
            if pod in (None, each.pod.key) and verb in (None, each.verb)
        ]
        if not chosen and (pod is not None or verb is not None):
            message = f"none of the last {len(self._records)} decisions is selected"
            if pod is not None and "/" not in pod:
                message += "; expected pod=NAMESPACE/NAME"
            return msgspec.json.encode({"decisions": [], "message": message})
        return msgspec.json.encode({"decisions": chosen[:limit]})


def decision_record(
    answer: VerbResult, context: AnswerContext, reasons: ReasonCounts
) -> DecisionRecord:
    """Return the record of a decision; ``reasons`` are those of the nodes it rejects."""
    decision, chosen = answer.decision, answer.named_candidate
    common = DecisionRecord(
        format_time(context.at_ns),
        context.request_id,
        context.verb,
        pod_reference(decision.pod),
        round(context.seconds * 1000, 3),
        context.generation,
        context.pods_version,
        rejected={shortened(str(reason)): n for reason, n in reasons.most_common(_MAX_REASONS)},
        notes=shortened_list(answer.notes),
    )
    if isinstance(decision, FilterDecision):
        return msgspec.structs.replace(common, fits=len(decision.feasible))
    return msgspec.structs.replace(
        common,
        node=None if chosen is None else chosen.node,
        victims=() if chosen is None else _pod_references(chosen.victims.pods),
        spared=() if chosen is None else _pod_references(chosen.spared),
        num_pdb_violations=0 if chosen is None else chosen.victims.violations,
        decided_by=decision.decided_by,
        candidates=len(decision.candidates),
        untried=decision.untried,
        search="" if decision.search is None else str(decision.search),
        protected=answer.guards.protected,
        refused_attempt=answer.guards.refused_attempt,
        refused_nodes=answer.guards.refused_nodes,
        message=shortened(decision.message),
    )


def pod_reference(pod: Pod) -> PodReference:
    """Return the identity and the priority of a pod."""
    return PodReference(pod.namespace, pod.name, pod.uid, pod.priority)


def _pod_references(pods: Iterable[Pod]) -> tuple[PodReference, ...]:
    return tuple(pod_reference(pod) for pod in pods)
