"""Records the answers of the extender in the ledger."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from extender.ledger.entry import entry_id
from extender.ledger.entry_builder import EntryBuilder
from extender.ledger.writer import LedgerWriter
from extender.observability.decision_log import ReasonCounts
from extender.protocol.verb_context import AnswerContext, VerbResult
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.policy import SchedulerRules

_DIGEST_BYTES: Final = 8


@dataclass(slots=True)
class DecisionRecorder:
    """Adds an entry for each answer to a call of one of the ``verbs``.

    ``number`` is that of this process in the IDs of its entries.
    """

    writer: LedgerWriter
    builder: EntryBuilder
    verbs: Collection[str]
    number: int
    last_id: int = 0

    def record(
        self,
        answer: VerbResult,
        snapshot: Snapshot,
        rules: SchedulerRules,
        answered: AnswerContext,
        reasons: ReasonCounts,
        body: bytes,
    ) -> None:
        """Record an answer to a call with this body; ``reasons`` are those of rejected nodes."""
        if answered.verb in self.verbs:
            number, digest = self._next_id(answered.at_ns), _digest(body)
            self.writer.add(
                self.builder.entry(number, digest, answer, snapshot, rules, answered, reasons)
            )

    def record_fallback(
        self, pod: Pod, verb: str, request_id: str, at_ns: int, fallback: str, body: bytes
    ) -> None:
        """Record a fallback answer to a call with this body."""
        if verb in self.verbs:
            number, digest = self._next_id(at_ns), _digest(body)
            self.writer.add(self.builder.fallback(number, digest, pod, verb, request_id, fallback))

    def _next_id(self, at_ns: int) -> int:
        self.last_id = entry_id(at_ns, self.number, self.last_id)
        return self.last_id


def _digest(body: bytes) -> str:
    return blake2b(body, digest_size=_DIGEST_BYTES).hexdigest()
