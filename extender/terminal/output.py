"""Output of commands: tables, JSON, YAML, names, rows and pages; the progress of long work."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from threading import Timer
from typing import Final, NoReturn

import msgspec
from rich.console import Console, RenderableType

from policies.kubernetes.input_error import InputError

_UNFOLDED_COLUMNS: Final = 100_000
_DELAY_SECONDS: Final = 2.0


class OutputError(InputError):
    """An answer has no such format."""


class OutputFormat(Enum):
    """The output format of an answer, as kubectl names them."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    CSV = "csv"
    HTML = "html"


class TableRows(Enum):
    """How many rows a table has: a limited number of each part, or all."""

    LIMITED = "limited"
    ALL = "all"

    def at_most(self, number: int) -> int:
        """Return ``number``; without a limit, a number that no table reaches."""
        return number if self is TableRows.LIMITED else sys.maxsize


def _no_names() -> Iterable[str]:
    raise OutputError("-o name: the answer names no objects; expected table, wide, json or yaml")


def no_rows() -> NoReturn:
    """Raise OutputError: an answer cannot be printed as CSV."""
    raise OutputError("-o csv: the answer has no rows; expected table, wide, json or yaml")


def no_page() -> NoReturn:
    """Raise OutputError: an answer cannot be printed as HTML."""
    raise OutputError("-o html: the answer has no page; expected table, wide, json or yaml")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command prints: a document, a table, names as of kubectl (``pod/web``), rows, a page.

    The first row of ``rows`` has the names of the columns. ``page`` is one HTML file.
    """

    document: Callable[[], object]
    table: Callable[[TableRows], RenderableType]
    names: Callable[[], Iterable[str]] = _no_names
    rows: Callable[[], Iterable[Sequence[object]]] = no_rows
    page: Callable[[], str] = no_page


def print_answer(output: OutputFormat, answer: Answer) -> None:
    """Print an answer in the given format. Raise OutputError."""
    match output:
        case OutputFormat.JSON:
            text = msgspec.json.format(msgspec.json.encode(answer.document()), indent=2)
            sys.stdout.write(text.decode() + "\n")
        case OutputFormat.YAML:
            sys.stdout.write(msgspec.yaml.encode(answer.document()).decode())
        case OutputFormat.NAME:
            sys.stdout.writelines(f"{name}\n" for name in answer.names())
        case OutputFormat.CSV:
            csv.writer(sys.stdout, lineterminator="\n").writerows(answer.rows())
        case OutputFormat.HTML:
            sys.stdout.write(answer.page() + "\n")
        case OutputFormat.TABLE:
            stdout_console().print(answer.table(TableRows.LIMITED))
        case OutputFormat.WIDE:
            stdout_console().print(answer.table(TableRows.ALL))


def stdout_console() -> Console:
    """Return a console on standard output, which folds lines at the width of a terminal.

    Without a terminal, lines are folded only if the environment sets ``COLUMNS``.
    """
    folds = sys.stdout.isatty() or os.environ.get("COLUMNS")
    return Console(width=None if folds else _UNFOLDED_COLUMNS)


@contextmanager
def show_progress(
    what: str, console: Console | None = None, delay: float = _DELAY_SECONDS
) -> Iterator[None]:
    """Show on stderr what is done, from ``delay`` seconds on until the block ends.

    Nothing is shown if stderr is not a terminal.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    status = console.status(what)
    timer = Timer(delay, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
