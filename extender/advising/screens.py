"""Where advice is shown: a table, a table that is refreshed, lines, one document, or one a line.

          once               watched, on a terminal    watched, elsewhere
text      a table            a table, refreshed        a line for each node and round
json      one document       one document a line       the same
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
    """Shows rounds and what is done about them."""

    def seen(self, seen: Round) -> None:
        """Show what was seen, before anything is done about it."""
        ...

    def deed(self, deed: Deed) -> None:
        """Show what has just been done, or would be."""
        ...

    def done(self, seen: Round, deeds: Sequence[Deed] | None) -> None:
        """Show the round as it was left; ``deeds`` is None if nothing was to be done."""
        ...


class TextScreen:
    """Prints each round as a table of the ``most`` pressing nodes, and then what is done."""

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
        """All has been shown."""


class LineScreen:
    """Prints plain lines as they come."""

    def __init__(self, most: int) -> None:
        self._most = most

    def seen(self, seen: Round) -> None:
        """Print the round's lines."""
        _write("\n".join(round_lines(seen, self._most)))

    def deed(self, deed: Deed) -> None:
        """Print a line."""
        _write(str(deed))

    def done(self, seen: Round, deeds: Sequence[Deed] | None) -> None:
        """All has been shown."""


class LiveScreen:
    """Keeps one table current, with the last things that were done below it."""

    def __init__(self, most: int, live: Live) -> None:
        self._most = most
        self._live = live
        self._last: Round | None = None
        self._deeds: list[Deed] = []

    def seen(self, seen: Round) -> None:
        """Show a new table."""
        self._last = seen
        self._refresh(seen)

    def deed(self, deed: Deed) -> None:
        """Add a line."""
        self._deeds = [*self._deeds, deed][-_SHOWN_DEEDS:]
        if self._last is not None:
            self._refresh(self._last)

    def done(self, seen: Round, deeds: Sequence[Deed] | None) -> None:
        """All has been shown."""

    def _refresh(self, seen: Round) -> None:
        self._live.update(round_table(seen, self._most, self._deeds), refresh=True)


class DocumentScreen:
    """Prints one document, to be read by people, too."""

    def seen(self, seen: Round) -> None:
        """Wait for what is done about it."""

    def deed(self, deed: Deed) -> None:
        """Wait for the rest."""

    def done(self, seen: Round, deeds: Sequence[Deed] | None) -> None:
        """Print the document."""
        document = msgspec.json.encode(round_document(seen, deeds))
        _write(msgspec.json.format(document, indent=2).decode())


class StreamScreen:
    """Prints a document a line."""

    def seen(self, seen: Round) -> None:
        """Wait for what is done about it."""

    def deed(self, deed: Deed) -> None:
        """Wait for the rest."""

    def done(self, seen: Round, deeds: Sequence[Deed] | None) -> None:
        """Print the line."""
        _write(msgspec.json.encode(round_document(seen, deeds)).decode())


def once(most: int, *, json: bool) -> AbstractContextManager[Screen]:
    """Return the screen for one answer."""
    return nullcontext(DocumentScreen() if json else TextScreen(most))


def watched(most: int, *, json: bool) -> AbstractContextManager[Screen]:
    """Return the screen for one answer after another."""
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
