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

from extender.eviction.advise.documents import round_document
from extender.eviction.advise.executor import Action
from extender.eviction.advise.rounds import ObservationRound
from extender.eviction.advise.tables import round_lines, round_table

_SHOWN_ACTIONS: Final = 10


class Printer(Protocol):
    """Prints rounds and the actions of their responses."""

    def print_round(self, observed: ObservationRound) -> None:
        """Print a round, before any action."""
        ...

    def print_action(self, action: Action) -> None:
        """Print an action that was just taken, or would be."""
        ...

    def finish_round(self, observed: ObservationRound, actions: Sequence[Action] | None) -> None:
        """Print the completed round; ``actions`` is None if no actions were requested."""
        ...


class TextPrinter:
    """Prints each round as a table of the ``max_nodes`` urgent nodes, followed by the actions."""

    def __init__(self, max_nodes: int) -> None:
        self._most = max_nodes
        self._console = Console()

    def print_round(self, observed: ObservationRound) -> None:
        """Print the table."""
        self._console.print(round_table(observed, self._most))

    def print_action(self, action: Action) -> None:
        """Print a line."""
        self._console.print(str(action), style="bold", markup=False, highlight=False)

    def finish_round(self, observed: ObservationRound, actions: Sequence[Action] | None) -> None:
        """Do nothing: everything has been printed."""


class LinePrinter:
    """Prints plain lines."""

    def __init__(self, max_nodes: int) -> None:
        self._most = max_nodes

    def print_round(self, observed: ObservationRound) -> None:
        """Print the round's lines."""
        _write("\n".join(round_lines(observed, self._most)))

    def print_action(self, action: Action) -> None:
        """Print a line."""
        _write(str(action))

    def finish_round(self, observed: ObservationRound, actions: Sequence[Action] | None) -> None:
        """Do nothing: everything has been printed."""


class LivePrinter:
    """Keeps one table current, with the last actions below it."""

    def __init__(self, max_nodes: int, live: Live) -> None:
        self._most = max_nodes
        self._live = live
        self._last: ObservationRound | None = None
        self._deeds: list[Action] = []

    def print_round(self, observed: ObservationRound) -> None:
        """Replace the table."""
        self._last = observed
        self._refresh(observed)

    def print_action(self, action: Action) -> None:
        """Add a line."""
        self._deeds = [*self._deeds, action][-_SHOWN_ACTIONS:]
        if self._last is not None:
            self._refresh(self._last)

    def finish_round(self, observed: ObservationRound, actions: Sequence[Action] | None) -> None:
        """Do nothing: everything has been printed."""

    def _refresh(self, seen: ObservationRound) -> None:
        self._live.update(round_table(seen, self._most, self._deeds), refresh=True)


class JsonPrinter:
    """Prints one indented document."""

    def print_round(self, observed: ObservationRound) -> None:
        """Do nothing: the document follows the actions."""

    def print_action(self, action: Action) -> None:
        """Do nothing: the document contains all actions."""

    def finish_round(self, observed: ObservationRound, actions: Sequence[Action] | None) -> None:
        """Print the document."""
        document = msgspec.json.encode(round_document(observed, actions))
        _write(msgspec.json.format(document, indent=2).decode())


class JsonLinesPrinter:
    """Prints one document per line."""

    def print_round(self, observed: ObservationRound) -> None:
        """Do nothing: the document follows the actions."""

    def print_action(self, action: Action) -> None:
        """Do nothing: the document contains all actions."""

    def finish_round(self, observed: ObservationRound, actions: Sequence[Action] | None) -> None:
        """Print the line."""
        _write(msgspec.json.encode(round_document(observed, actions)).decode())


def single_printer(max_nodes: int, *, json: bool) -> AbstractContextManager[Printer]:
    """Return the printer for a single round."""
    return nullcontext(JsonPrinter() if json else TextPrinter(max_nodes))


def watch_printer(max_nodes: int, *, json: bool) -> AbstractContextManager[Printer]:
    """Return the printer for repeated rounds."""
    if json:
        return nullcontext(JsonLinesPrinter())
    return _live(max_nodes) if sys.stdout.isatty() else nullcontext(LinePrinter(max_nodes))


@contextmanager
def _live(max_nodes: int) -> Iterator[Printer]:
    with Live(auto_refresh=False) as live:
        yield LivePrinter(max_nodes, live)


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
