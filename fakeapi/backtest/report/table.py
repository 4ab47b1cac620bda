"""The report as tables for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from extender.terminal.output import TableRows
from extender.terminal.plain_tables import plain_text, rows_table
from fakeapi.backtest.report.compared_rows import (
    RowsByGroup,
    class_rows,
    compared_rows,
    difference_headings,
    tenant_rows,
)
from fakeapi.backtest.report.comparison import Comparison
from fakeapi.backtest.report.sentences import (
    READING,
    conclusions,
    missing_sentences,
    workload_sentences,
)

_SHOWN_TENANTS: Final = 10


def render_table(comparison: Comparison, rows: TableRows) -> RenderableType:
    """Return the report. With a limit of rows, it has the ten tenants with the most disruptions.

    Without one, it has all tenants, and the classes of each.
    """
    limit = rows.at_most(_SHOWN_TENANTS)
    more = len(comparison.tenants) - limit
    policies = comparison.policies
    tables = [
        _table("", policies, [("", compared_rows(comparison.measures))]),
        _table("class", policies, class_rows(comparison.classes)),
        _table("tenant", policies, tenant_rows(comparison.tenants[:limit])),
    ]
    if rows is TableRows.ALL:
        tables.append(_table("tenant/class", policies, tenant_rows(comparison.groups)))
    return Group(
        *(plain_text(each, "bold yellow") for each in missing_sentences(comparison)),
        *(plain_text(each) for each in workload_sentences(comparison)),
        *(plain_text(each, "bold") for each in conclusions(comparison)),
        *(part for table in tables for part in (Text(), table)),
        Text(f"and {more:,} tenants with fewer disruptions; -o wide has them all" * (more > 0)),
        Text(f"* {READING}", style="dim"),
        *_decisions(comparison),
    )


def _table(head: str, policies: Sequence[str], groups: RowsByGroup) -> Table:
    """Return a table; the first row of a group has its name, unless ``head`` is empty."""
    first = [head] if head else []
    headings = [*first, "measure", *policies, *difference_headings(policies)]
    texts = []
    for name, rows in groups:
        for place, row in enumerate(rows):
            group = [name if place == 0 else ""] if head else []
            marked = (f"{each.text} *" if each.change else each.text for each in row.differences)
            texts.append([*group, row.title, *row.values, *marked])
    return rows_table([escape(str(plain_text(each))) for each in headings], texts)


def _decisions(comparison: Comparison) -> Iterator[Text]:
    for policy in comparison.policies[1:]:
        found = [each for each in comparison.decisions if each.policy == policy]
        if found:
            yield Text()
            yield plain_text(f"decisions in which {policy} differs most", "bold")
        for place, each in enumerate(found, 1):
            yield plain_text(f"{place}. for {each.heading}")
            yield from (plain_text(f"   {sentence}") for sentence in each.explanation)
