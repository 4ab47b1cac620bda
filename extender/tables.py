"""Decisions as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from policies.decision import Candidate, FilterDecision, PreemptionDecision
from policies.model import Pod

_SHOWN_PODS = 8


def filter_table(decision: FilterDecision) -> RenderableType:
    """Show, for each node, whether the pod fits and if not, why."""
    table = _table("node", "fits", "because", "could eviction help")
    for node in sorted(decision.feasible):
        table.add_row(node, "yes", "", "")
    for node, rejection in sorted(decision.rejected.items()):
        table.add_row(node, "no", str(rejection), "yes" if rejection.resolvable else "no")
    nodes = len(decision.feasible) + len(decision.rejected)
    head = Text(f"{decision.pod.key} fits {len(decision.feasible)} of {nodes} nodes", style="bold")
    return Group(head, table, *_warning(decision.unjudged))


def preempt_table(decision: PreemptionDecision) -> RenderableType:
    """Show, for each node, who would go and who is spared, or why the node cannot help."""
    head = Text(next(iter(decision.describe())), style="bold")
    table = _table("", "node", "goes", "spared", "breaks", "otherwise because")
    for candidate in _best_first(decision):
        mark = "→" if candidate is decision.chosen else ""
        broken = str(candidate.victims.violations or "")
        going, spared = _names(candidate.victims.pods), _names(candidate.spared)
        table.add_row(mark, candidate.node, going, spared, broken, "")
    for node, rejection in sorted(decision.rejected.items()):
        table.add_row("", node, "", "", "", str(rejection))
    message = Text(decision.message, style="italic")
    return Group(head, table, message, *_warning(decision.unjudged))


def _best_first(decision: PreemptionDecision) -> Iterator[Candidate]:
    if decision.chosen is not None:
        yield decision.chosen
    for node in sorted(decision.candidates):
        if decision.chosen is None or node != decision.chosen.node:
            yield decision.candidates[node]


def _names(pods: Iterable[Pod]) -> str:
    names = [f"{pod.key} ({pod.priority})" for pod in pods]
    more = len(names) - _SHOWN_PODS
    return "\n".join([*names[:_SHOWN_PODS], *([f"and {more} more"] if more > 0 else [])])


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _warning(unjudged: Iterable[str]) -> Iterator[Text]:
    names = ", ".join(sorted(unjudged))
    if names:
        yield Text(f"not judged, so the answer may be too hopeful: {names}", style="yellow")
