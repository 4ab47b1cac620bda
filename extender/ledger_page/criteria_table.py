"""The table of criteria: the values of the chosen candidate beside those of its closest rival."""

from __future__ import annotations

from extender.ledger.entry import LedgerEntry
from extender.ledger.why import compare
from extender.ledger_page.view import View


class CriterionRow(View, frozen=True, kw_only=True):
    """The values of a criterion; ``effect`` is ``equal``, ``decides`` or ``not needed``."""

    criterion: str
    chosen: str
    rival: str
    effect: str


def criteria_table(entry: LedgerEntry) -> tuple[CriterionRow, ...]:
    """Return the rows of the criteria in their order, empty without a closest rival."""
    rows, effect = [], "equal"
    for each in compare(entry):
        if effect == "decides":
            effect = "not needed"
        elif effect == "equal" and each["decides"]:
            effect = "decides"
        rows.append(
            CriterionRow(
                criterion=each["criterion"],
                chosen=each["shown"],
                rival=each["runnerUpShown"],
                effect=effect,
            )
        )
    return tuple(rows)
