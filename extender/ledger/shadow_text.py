"""What a shadow policy would have chosen, as text that a command, a page and a tool share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from extender.ledger.choice_cost import ChoiceCost, choice_cost, differs
from extender.ledger.entry import LedgerEntry

_MOST_NAMED: Final = 5
_MILLICORE_HOUR: Final = 1000 * 3600
_HOUR: Final = 3600
_WHOLE: Final = 100
"""From so many hours on, they are written as whole numbers."""

SAME_CHOICE: Final = "the same choice"


def shadow_text(live: LedgerEntry, shadow: LedgerEntry) -> str:
    """Return the choice of a shadow policy, and by what it differs from that of the decision."""
    if not differs(live, shadow):
        return SAME_CHOICE
    changes = ", ".join(cost_changes(choice_cost(live), choice_cost(shadow)))
    return f"{choice_text(shadow)}{f': {changes}' if changes else ''}"


def choice_text(entry: LedgerEntry) -> str:
    """Return the node and the victims of a choice, or why there is no node."""
    if entry.node is None:
        guards = (entry.refused_attempt, *entry.refused_nodes, *entry.protected)
        reason = ", ".join(filter(None, guards))
        return f"no node, because of {reason}" if reason else "no node"
    named = [f"{pod.key} ({pod.priority})" for pod in entry.victims[:_MOST_NAMED]]
    more = len(entry.victims) - len(named)
    victims = ", ".join((*named, *([f"{more} more"] if more else ())))
    return f"{entry.node}, victims {victims}" if victims else f"{entry.node}, no victims"


def cost_changes(live: ChoiceCost, shadow: ChoiceCost) -> Iterator[str]:
    """Yield by what the cost of shadow choices differs from that of the answers."""
    for live_count, count, what in (
        (live.refusals, shadow.refusals, "refusals"),
        (live.victims, shadow.victims, "victims"),
        (live.violations, shadow.violations, "PDB violations"),
    ):
        if count != live_count:
            yield f"{count - live_count:+d} {what}"
    for live_work, work, unit, what in (
        (live.cpu, shadow.cpu, _MILLICORE_HOUR, "core-hours lost"),
        (live.devices, shadow.devices, _HOUR, "device-hours lost"),
    ):
        if work != live_work:
            hours = (work - live_work) / unit
            yield f"{hours:+,.0f} {what}" if abs(hours) >= _WHOLE else f"{hours:+.3g} {what}"
