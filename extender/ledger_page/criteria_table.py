"""The table of criteria: the values of the chosen candidate beside those of its closest rival."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from extender.kube.decoders.object_meta import format_time
from extender.ledger.entry import LedgerCandidate, LedgerEntry
from extender.ledger_page.amounts import SECOND_NS, format_hours, format_interval
from extender.ledger_page.view import View
from policies.preemption.costs.catalog import HIGHEST_QUOTA_USAGE, LEAST_LOST_WORK
from policies.preemption.policy import PRIORITY_SHIFT

_NOT_STARTED: Final = 2**63 - 1
_HOUR_OF_WORK: Final = 3600 * 1000


class CriterionRow(View, frozen=True, kw_only=True):
    """The values of a criterion; ``effect`` is ``equal``, ``decides`` or ``not needed``."""

    criterion: str
    chosen: str
    rival: str
    effect: str


def criteria_table(entry: LedgerEntry) -> tuple[CriterionRow, ...]:
    """Return the rows of the criteria in their order, empty without a closest rival."""
    chosen, rival = entry.chosen, entry.runner_up
    if chosen is None or rival is None:
        return ()
    rows = []
    effect = "equal"
    compared = zip(entry.criteria, chosen.criteria, rival.criteria, strict=False)
    for name, value, other in compared:
        if effect == "decides":
            effect = "not needed"
        elif effect == "equal" and name == entry.decided_by:
            effect = "decides"
        texts = _text(name, value, chosen), _text(name, other, rival)
        rows.append(CriterionRow(criterion=name, chosen=texts[0], rival=texts[1], effect=effect))
    return tuple(rows)


def _text(name: str, value: int, candidate: LedgerCandidate) -> str:
    """Return a value as people read it; the smaller value is preferred, so some are negated."""
    if name == "smallest sum of priorities":
        return f"{value - PRIORITY_SHIFT * len(candidate.victims):,}"
    return _TEXTS.get(name, "{:,}".format)(value)


def _start(value: int) -> str:
    return "not started" if -value == _NOT_STARTED else format_time(-value)


def _work(value: int) -> str:
    return format_hours(value, _HOUR_OF_WORK)


_TEXTS: Final[Mapping[str, Callable[[int], str]]] = {
    "latest start of the most important victims": _start,
    LEAST_LOST_WORK: _work,
    "least lost work of gangs": _work,
    "least run time": lambda value: format_interval(value * SECOND_NS),
    "most restarts": lambda value: f"{-value:,}",
    HIGHEST_QUOTA_USAGE: lambda value: f"{-value / 10:g}%",
}
