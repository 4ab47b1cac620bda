"""What followed a decision, as text that a command, a page and a tool share."""

from __future__ import annotations

from typing import Final

from extender.ledger.entry import LedgerEntry, LedgerRecord, State, VictimOutcome
from policies.kubernetes.duration import format_duration

_SECOND_NS: Final = 10**9
_MILLISECOND_NS: Final = 10**6


def victim_outcome(record: LedgerRecord, place: int) -> VictimOutcome:
    """Return what became of the victim at ``place``; an empty outcome if nothing is known."""
    victims = record.outcome.victims
    return victims[place] if place < len(victims) else VictimOutcome()


def victim_followed(record: LedgerRecord, place: int) -> str:
    """Return when the victim at ``place`` was gone, and which pod took its place."""
    entry, victim = record.entry, record.entry.victims[place]
    found = victim_outcome(record, place)
    if not found.gone_ns:
        return f"{victim.key} was not seen to be deleted"
    gone = f"{victim.key} was gone {_after(entry, found.gone_ns)}"
    if not found.replacement:
        return f"{gone}; {'no pod took its place yet' if victim.owner else 'it has no controller'}"
    if not found.bound_ns:
        return f"{gone}; {found.replacement} took its place and is pending"
    bound = f"bound to {found.node} {_after(entry, found.bound_ns)}"
    return f"{gone}; {found.replacement} took its place, {bound}"


def preemptor_followed(record: LedgerRecord) -> str:
    """Return what became of the preemptor."""
    entry, outcome = record.entry, record.outcome
    pod = entry.pod.key
    match outcome.state:
        case State.BOUND:
            other = "" if outcome.node == entry.node else f", not to {entry.node}"
            return f"{pod} was bound to {outcome.node} {_after(entry, outcome.ended_ns)}{other}"
        case State.DELETED:
            return f"{pod} was deleted or finished {_after(entry, outcome.ended_ns)}, not bound"
        case State.SUPERSEDED:
            return f"{pod} was not bound before a later decision about it"
        case State.UNKNOWN:
            return f"{pod} was not bound until the ledger ceased to follow it"
        case State.OPEN:
            return f"{pod} is not bound yet"


def elapsed_text(nanoseconds: int) -> str:
    """Return a duration in whole seconds, or in milliseconds below ten seconds."""
    unit = _SECOND_NS if nanoseconds >= 10 * _SECOND_NS else _MILLISECOND_NS
    return format_duration(max(0, nanoseconds) // unit * unit)


def _after(entry: LedgerEntry, later_ns: int) -> str:
    return f"after {elapsed_text(later_ns - entry.at_ns)}" if later_ns else "at an unknown time"
