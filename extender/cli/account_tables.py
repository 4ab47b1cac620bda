"""Accounts and records of the ledger as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from extender.ledger.cluster_evidence import ClusterEvidence
from extender.ledger.why import (
    AccountLine,
    ComparisonDocument,
    DecisionAccount,
    DecisionSummary,
    WhyDocument,
)
from extender.terminal.output import TableRows
from extender.terminal.plain_tables import plain_table, plain_text, rows_table

_SHOWN_OTHERS = 5


def why_table(document: WhyDocument, rows: TableRows) -> RenderableType:
    """Return one decision in full, and a line for each other one."""
    spared: list[AccountLine] = [
        {"topic": "would have spared it", "text": f"{each['change']}: {each['outcome']}"}
        for each in document.get("counterfactuals", ())
    ]
    return Group(
        decision_table(document["decision"], rows),
        *([account_table(spared)] if spared else ()),
        *_others(document["others"], rows),
    )


def decision_table(decision: DecisionAccount, rows: TableRows) -> RenderableType:
    """Return the account of a decision; with all rows, also the values of all criteria."""
    parts: list[RenderableType] = [
        plain_text(decision["summary"], style="bold"),
        account_table(decision["account"]),
    ]
    if rows is TableRows.ALL and decision["comparison"]:
        parts.append(_comparison(decision["comparison"]))
    return Group(*parts)


def evidence_table(evidence: ClusterEvidence) -> RenderableType:
    """Return what a cluster shows, what it does not show, and how to keep it."""
    return Group(
        plain_text(f"{evidence['pod']}: what {evidence['source']} shows", style="bold"),
        account_table(evidence["account"]),
        Text(f"not shown: {evidence['unknown']}"),
        Text("a ledger keeps all of it: reprieve serve --ledger FILE"),
    )


def account_table(lines: Iterable[AccountLine]) -> Table:
    """Return the topics and texts of an account; a topic is written once for its lines."""
    table = plain_table("", "")
    table.show_header = False
    previous = ""
    for line in lines:
        topic = "" if line["topic"] == previous else line["topic"]
        table.add_row(Text(topic, style="dim"), plain_text(line["text"]))
        previous = line["topic"]
    return table


def _comparison(values: Sequence[ComparisonDocument]) -> Table:
    return rows_table(
        ("", "criterion", "chosen", "runner-up"),
        (
            (
                "→" if each["decides"] else "",
                each["criterion"],
                each["shown"],
                each["runnerUpShown"],
            )
            for each in values
        ),
    )


def _others(others: Sequence[DecisionSummary], rows: TableRows) -> Iterator[RenderableType]:
    if not others:
        return
    shown = rows.at_most(_SHOWN_OTHERS)
    yield Text(f"other decisions: {len(others)}", style="bold")
    yield rows_table(
        ("at", "decision", "summary"),
        ((each["at"], each["id"], each["summary"]) for each in others[:shown]),
    )
    if len(others) > shown:
        yield Text(f"and {len(others) - shown} more")
