"""Sentences about a decision: what it was, and why."""

from __future__ import annotations

from collections.abc import Sequence

from extender.ledger.entry import LedgerEntry, LedgerRecord
from extender.ledger.outcome_text import victim_outcome
from extender.ledger_page.amounts import count_of


def headline(record: LedgerRecord) -> str:
    """Return what was decided and why, in one sentence."""
    entry, pod = record.entry, record.entry.pod.key
    if entry.fallback:
        return f"No decision was made for {pod}: {entry.fallback}."
    if entry.fits is not None:
        return f"{pod} fits {count_of(entry.fits, 'node')} without preemption."
    if entry.chosen is None:
        return f"{pod} preempts no pods: {_no_node(entry)}."
    if not entry.victims:
        return f"{pod} was sent to {entry.node} without victims{_ending(entry)}"
    places = range(len(entry.victims))
    names = _names([victim.key for victim in entry.victims])
    return f"{names} {_fate(record, places)} {entry.node} so that {pod} could run{_ending(entry)}"


def victim_sentence(record: LedgerRecord, place: int) -> str:
    """Return what became of one victim of a decision, and why."""
    entry = record.entry
    fate, pod = _fate(record, range(place, place + 1)), entry.pod.key
    return f"{entry.victims[place].key} {fate} {entry.node} so that {pod} could run{_ending(entry)}"


def reason(entry: LedgerEntry) -> str:
    """Return what decided between the nodes, "" if it is not known."""
    rival = entry.runner_up
    if entry.decided_by is None:
        return "no other node was a candidate" if entry.candidates == 1 else ""
    if rival is None:
        return f"{entry.decided_by} decided"
    return f"{entry.decided_by} separated {entry.node} from {rival.node}"


def _no_node(entry: LedgerEntry) -> str:
    if entry.refused_attempt:
        return entry.refused_attempt
    if entry.refused_nodes:
        return f"guards of the policy refused {count_of(sum(entry.refused_nodes.values()), 'node')}"
    return "no node is a candidate" if not entry.candidates else "no candidate was named"


def _fate(record: LedgerRecord, places: range) -> str:
    verb = "was" if len(places) == 1 else "were"
    gone = all(victim_outcome(record, place).gone_ns for place in places)
    return f"{verb} {'evicted' if gone else 'chosen for eviction'} from"


def _names(keys: Sequence[str]) -> str:
    return count_of(len(keys), "pod") if len(keys) > 2 else " and ".join(keys)


def _ending(entry: LedgerEntry) -> str:
    why = reason(entry)
    return f": {why}." if why else "."
