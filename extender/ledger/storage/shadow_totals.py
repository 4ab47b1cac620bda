"""How the choices of shadow policies differ from those of the decisions, over a period."""

from __future__ import annotations

from typing import Final, NamedTuple

from extender.ledger.choice_cost import ChoiceCost
from extender.ledger.storage.database import Row, whole_number

SUMS: Final = "count(*), " + ", ".join(
    f"sum(shadow.{name})"
    for name in (
        "differs",
        *(f"live_{column}" for column in ChoiceCost._fields),
        *ChoiceCost._fields,
    )
)
"""The columns of a shadow policy in a query, after its name."""


class ShadowTotal(NamedTuple):
    """The decisions that a shadow policy has made as well, and the cost of both choices.

    ``differences`` are those in which node or victims differ.
    """

    policy: str
    decisions: int
    differences: int
    live: ChoiceCost
    shadow: ChoiceCost


def shadow_total(row: Row) -> ShadowTotal:
    """Return the total of a row of the query with ``SUMS``. Raise LedgerError."""
    policy, decisions, differences, *costs = row
    middle = len(ChoiceCost._fields)
    return ShadowTotal(
        str(policy),
        whole_number(decisions),
        whole_number(differences),
        ChoiceCost(*map(whole_number, costs[:middle])),
        ChoiceCost(*map(whole_number, costs[middle:])),
    )
