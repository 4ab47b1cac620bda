"""Records the answers of the extender in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from extender.config.rules_source import RulesSource
from extender.config.strict_decoding import ConfigError
from extender.ledger.entry import LedgerEntry, entry_id
from extender.ledger.entry_builder import EntryBuilder
from extender.ledger.inputs.call_inputs import inputs_of
from extender.ledger.writer import LedgerWriter
from extender.observability.decision_log import ReasonCounts
from extender.protocol.preempt_verb import PreemptArgs
from extender.protocol.verb_context import AnswerContext, CallContext, VerbResult
from extender.protocol.verbs import ReceivedCall

_DIGEST_BYTES: Final = 8


@dataclass(slots=True)
class DecisionRecorder:
    """Adds an entry for each answer to a call of one of the ``verbs``.

    ``number`` is that of this process in the IDs of its entries. ``read_rules`` returns the source
    of the current rules if the inputs of decisions are to be kept.
    """

    writer: LedgerWriter
    builder: EntryBuilder
    verbs: Collection[str]
    number: int
    read_rules: Callable[[], RulesSource] | None = None
    last_id: int = 0
    _rules: RulesSource | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Read the source of the rules."""
        self.reload_rules()

    def reload_rules(self) -> None:
        """Read the source of the rules again; no inputs are kept while it cannot be read."""
        try:
            self._rules = None if self.read_rules is None else self.read_rules()
        except ConfigError:
            self._rules = None

    def record(
        self,
        call: ReceivedCall,
        answer: VerbResult,
        context: CallContext,
        answered: AnswerContext,
        reasons: ReasonCounts,
    ) -> LedgerEntry | None:
        """Record an answer to a call, and return its entry; None if its verb is not kept.

        ``reasons`` are those of the nodes that it rejects.
        """
        if answered.verb not in self.verbs:
            return None
        entry = self.builder.entry(
            self._next_id(answered.at_ns),
            _digest(call.body),
            answer,
            context.snapshot,
            context.rules,
            answered,
            reasons,
        )
        inputs = None
        if self._rules is not None and entry.victims and isinstance(call.args, PreemptArgs):
            inputs = inputs_of(call.args, context, self._rules)
        self.writer.add(entry, inputs)
        return entry

    def record_fallback(
        self, call: ReceivedCall, verb: str, request_id: str, at_ns: int, fallback: str
    ) -> None:
        """Record a fallback answer to a call."""
        if verb in self.verbs:
            number, digest = self._next_id(at_ns), _digest(call.body)
            self.writer.add(
                self.builder.fallback(number, digest, call.args.pod, verb, request_id, fallback)
            )

    def _next_id(self, at_ns: int) -> int:
        self.last_id = entry_id(at_ns, self.number, self.last_id)
        return self.last_id


def _digest(body: bytes) -> str:
    return blake2b(body, digest_size=_DIGEST_BYTES).hexdigest()
