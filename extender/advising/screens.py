"""Output formats: a table, a refreshed table, lines, one document, or one document per line.

          once               watched, on a terminal    watched, elsewhere
text      a table            a table, refreshed        a line for each node and round json      one
document       one document a line       the same
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, Protocol

import msgspec
from rich.console import Console
from rich.live import Live

from extender.advising.deeds import Deed
from extender.advising.documents import round_document
from extender.advising.rounds import Round
from extender.advising.tables import round_lines, round_table

_SHOWN_DEEDS: Final = 10


class Screen(Protocol):
    """Prints rounds and the actions of their responses."""

    def seen(self, seen: Round) -> None:
        """Print a round, before any action."""
        ...

    def deed(self, deed: Deed) -> None:
        """Print an action that was just taken, or would be."""
        ...

    def done(self, seen: Round, deeds: Sequence[Deed] | None) -> None:
        """Print the completed round; ``actions`` is None if no actions were requested."""
        ...


class TextScreen:
    """Prints each round as a table of the ``max_nodes`` urgent nodes, followed by the actions."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._console = Console()

    def seen(self, seen: Round) -> None:
        """Print the table."""
        self._console.print(round_table(seen, self._most))

    def deed(self, deed: Deed) -> None:
        """Print a line."""
        self._console.print(str(deed), style="bold", markup=False, highlight=False)

    def done(self, seen: Round, deeds: Sequence[Deed] | None) -> None:
        """Do nothing: everything has been printed."""


class LineScreen:
    """Prints plain lines."""

    def __init__(self, most: int) -> None:
        self._most = most

    def seen(self, seen: Round) -> None:
        """Print the round's lines."""
        _write("\n".join(round_lines(seen, self._most)))

    def deed(self, deed: Deed) -> None:
        """Print a line."""
        _write(str(deed))

    def done(self, seen: Round, deeds: Sequence[Deed] | None) -> None:
        """Do nothing: everything has been printed."""


class LiveScreen:
    """Keeps one table current, with the last actions below it."""

    def __init__(self, most: int, live: Live) -> None:
        self._most = most
        self._live = live
        self._last: Round | None = None
        self._deeds: list[Deed] = []

    def seen(self, seen: Round) -> None:
        """Replace the table."""
        self._last = seen
        self._refresh(seen)

    def deed(self, deed: Deed) -> None:
        """Add a line."""
        self._deeds = [*self._deeds, deed][-_SHOWN_DEEDS:]
        if self._last is not None:
            self._refresh(self._last)

    def done(self, seen: Round, deeds: Sequence[Deed] | None) -> None:
        """Do nothing: everything has been printed."""

    def _refresh(self, seen: Round) -> None:
        self._live.update(round_table(seen, self._most, self._deeds), refresh=True)


class DocumentScreen:
    """Prints one indented document."""

    def seen(self, seen: Round) -> None:
        """Do nothing: the document follows the actions."""

    def deed(self, deed: Deed) -> None:
        """Do nothing: the document contains all actions."""

    def done(self, seen: Round, deeds: Sequence[Deed] | None) -> None:
        """Print the document."""
        document = msgspec.json.encode(round_document(seen, deeds))
        _write(msgspec.json.format(document, indent=2).decode())


class StreamScreen:
    """Prints one document per line."""

    def seen(self, seen: Round) -> None:
        """Do nothing: the document follows the actions."""

    def deed(self, deed: Deed) -> None:
        """Do nothing: the document contains all actions."""

    def done(self, seen: Round, deeds: Sequence[Deed] | None) -> None:
        """Print the line."""
        _write(msgspec.json.encode(round_document(seen, deeds)).decode())


def once(most: int, *, json: bool) -> AbstractContextManager[Screen]:
    """Return the printer for a single round."""
    return nullcontext(DocumentScreen() if json else TextScreen(most))


def watched(most: int, *, json: bool) -> AbstractContextManager[Screen]:
    """Return the printer for repeated rounds."""
    if json:
        return nullcontext(StreamScreen())
    return _live(most) if sys.stdout.isatty() else nullcontext(LineScreen(most))


@contextmanager
def _live(most: int) -> Iterator[Screen]:
    with Live(auto_refresh=False) as live:
        yield LiveScreen(most, live)


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
