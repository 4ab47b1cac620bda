"""What all figures are made with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.bench.budgets import Figure
from tests.load.records import REPRIEVE, Call

Named = Iterator[tuple[str, Figure]]


def picked(
    calls: Sequence[Call], phase: str, target: str = REPRIEVE, user: str = "", kind: str = ""
) -> list[Call]:
    """Return the calls of a phase to a target, of one user or kind if it is named."""
    return [
        call
        for call in calls
        if (call.phase, call.target) == (phase, target)
        and user in ("", call.user)
        and kind in ("", call.kind)
    ]


def ratio(what: str, shown: str, cost: float) -> Figure:
    """Return a figure that is no time."""
    return Figure(what, shown, cost, timed=False)
