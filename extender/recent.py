"""The last decisions, kept to be asked for: ``GET /decisions``.

A record says what was asked, what was answered, and why: the criterion that decided, who was
spared, how often each reason was found, and the notes. It is made of texts and numbers of its own,
so no old state of the cluster is kept alive. Nothing else of a pod's specification is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from extender.tallies import Tally
from extender.verdict import Answer, Circumstances
from policies.decision import FilterDecision
from policies.model import Pod

_MOST_REASONS: Final = 20


class KnownPod(msgspec.Struct, rename="camel", frozen=True):
    """A pod by its names."""

    namespace: str
    name: str
    uid: str
    priority: int


class Record(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """One answer; times are RFC 3339 and milliseconds.

    ``pods_version`` is the resource version of the newest change to a pod that was known when it
    was decided. ``fits`` is None for preemption. ``rejected`` counts nodes by reason. ``degraded``
    is set where something stands in for a decision: the case, and what does.
    """

    at: str
    request_id: str = msgspec.field(name="requestID")
    verb: str
    pod: KnownPod
    took_milliseconds: float = 0.0
    generation: int = 0
    pods_version: str = ""
    fits: int | None = None
    node: str | None = None
    victims: Sequence[KnownPod] = ()
    spared: Sequence[KnownPod] = ()
    num_pdb_violations: int = msgspec.field(default=0, name="numPDBViolations")
    decided_by: str | None = None
    candidates: int = 0
    untried: int = 0
    rejected: Mapping[str, int] = {}
    message: str = ""
    notes: Sequence[str] = ()
    degraded: str = ""


class Recent:
    """The last ``kept`` records."""

    def __init__(self, kept: int = 256) -> None:
        self._records: deque[Record] = deque(maxlen=kept)

    def add(self, record: Record) -> None:
        """Keep a record, and forget the oldest if need be."""
        self._records.append(record)

    def document(
        self, limit: int | None = None, pod: str | None = None, verb: str | None = None
    ) -> bytes:
        """Return the newest ``limit`` records as JSON, newest first.

        Only those of ``pod`` (namespace/name) and ``verb``, if given.
        """
        chosen = [
            each
            for each in reversed(self._records)
            if pod in (None, _key(each.pod)) and verb in (None, each.verb)
        ]
        return msgspec.json.encode({"decisions": chosen[:limit]})


def record_of(answer: Answer, around: Circumstances, reasons: Tally) -> Record:
    """Make a record of a decision; ``reasons`` are those of the nodes it refused."""
    decision, chosen = answer.decision, answer.promised
    common = Record(
        around.at,
        around.request_id,
        around.verb,
        known(decision.pod),
        round(around.seconds * 1000, 3),
        around.generation,
        around.pods_version,
        rejected={str(reason): n for reason, n in reasons.most_common(_MOST_REASONS)},
        notes=answer.notes,
    )
    if isinstance(decision, FilterDecision):
        return msgspec.structs.replace(common, fits=len(decision.feasible))
    return msgspec.structs.replace(
        common,
        node=None if chosen is None else chosen.node,
        victims=() if chosen is None else _known(chosen.victims.pods),
        spared=() if chosen is None else _known(chosen.spared),
        num_pdb_violations=0 if chosen is None else chosen.victims.violations,
        decided_by=decision.decided_by,
        candidates=len(decision.candidates),
        untried=decision.untried,
        message=decision.message,
    )


def known(pod: Pod) -> KnownPod:
    """Name a pod."""
    return KnownPod(pod.namespace, pod.name, pod.uid, pod.priority)


def _known(pods: Iterable[Pod]) -> tuple[KnownPod, ...]:
    return tuple(known(pod) for pod in pods)


def _key(pod: KnownPod) -> str:
    return f"{pod.namespace}/{pod.name}"
