"""Decisions in short: a row for each, with the sentence about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypedDict

from extender.ledger.entry import LedgerRecord, format_id
from extender.ledger.why import decision_summary

_SECOND_NS: Final = 10**9


class DecisionRow(TypedDict):
    """A decision in ``ledger list -o json``; ``boundAfterSeconds`` is null if it is not bound."""

    id: str
    at: str
    verb: str
    preemptor: str
    priority: int
    node: str | None
    victims: list[str]
    decidedBy: str | None
    state: str
    boundAfterSeconds: float | None
    fallback: str
    summary: str


def list_document(records: Sequence[LedgerRecord]) -> list[DecisionRow]:
    """Return the decisions in short."""
    return [_decision_row(each) for each in records]


def _decision_row(record: LedgerRecord) -> DecisionRow:
    entry, outcome = record.entry, record.outcome
    is_bound = outcome.state.value == "bound" and outcome.ended_ns
    return {
        "id": format_id(entry.id),
        "at": entry.at,
        "verb": entry.verb,
        "preemptor": entry.pod.key,
        "priority": entry.pod.priority,
        "node": entry.node,
        "victims": [victim.key for victim in entry.victims],
        "decidedBy": entry.decided_by,
        "state": outcome.state.value if entry.victims else "",
        "boundAfterSeconds": in_seconds(outcome.ended_ns - entry.at_ns if is_bound else None),
        "fallback": entry.fallback,
        "summary": decision_summary(record, entry.pod.key)["summary"],
    }


def in_seconds(nanoseconds: int | None) -> float | None:
    """Return a duration in seconds, to the millisecond."""
    return None if nanoseconds is None else round(nanoseconds / _SECOND_NS, 3)
