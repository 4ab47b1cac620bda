"""Tables without lines, and text that no terminal takes as a command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text


def plain_table(*columns: str) -> Table:
    """Return a table without lines."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def rows_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a table of texts, which are printed as they are."""
    table = plain_table(*head)
    for row in rows:
        table.add_row(*(plain_text(each) for each in row))
    return table


def plain_text(value: object, style: str = "") -> Text:
    """Return a text in which characters that are not printable are escaped.

    Events and messages may hold any character, also those that terminals take as commands.
    """
    shown = (each if each.isprintable() else f"\\x{ord(each):02x}" for each in str(value))
    return Text("".join(shown), style)
