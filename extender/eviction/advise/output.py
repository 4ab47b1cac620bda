"""Output of rounds: a table, a refreshed table, lines, one document, or one document per line.

once            watched, on a terminal    watched, elsewhere
text  a table         a table, refreshed        a line for each node and round
json  one document    one document a line       one document a line
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

import msgspec
from rich.console import Console
from rich.live import Live

from extender.eviction.advise.documents import round_document
from extender.eviction.advise.executor import Action
from extender.eviction.advise.rounds import ObservationRound
from extender.eviction.advise.tables import round_lines, round_table

_SHOWN_ACTIONS: Final = 10


class Printer:
    """Prints rounds and the actions of their responses; subclasses print what they override."""

    def print_round(self, observed: ObservationRound) -> None:
        """Print a round, before any action."""

    def print_action(self, action: Action) -> None:
        """Print an action that was just taken, or would be."""

    def finish_round(self, observed: ObservationRound, actions: Sequence[Action] | None) -> None:
        """Print the completed round; ``actions`` is None if no actions were requested."""


class TextPrinter(Printer):
    """Prints each round as a table of the ``max_nodes`` urgent nodes, followed by the actions."""

    def __init__(self, max_nodes: int) -> None:
        self._max_nodes = max_nodes
        self._console = Console()

    def print_round(self, observed: ObservationRound) -> None:
        """Print the table."""
        self._console.print(round_table(observed, self._max_nodes))

    def print_action(self, action: Action) -> None:
        """Print a line."""
        self._console.print(str(action), style="bold", markup=False, highlight=False)


class LinePrinter(Printer):
    """Prints plain lines."""

    def __init__(self, max_nodes: int) -> None:
        self._max_nodes = max_nodes

    def print_round(self, observed: ObservationRound) -> None:
        """Print the round's lines."""
        _write("\n".join(round_lines(observed, self._max_nodes)))

    def print_action(self, action: Action) -> None:
        """Print a line."""
        _write(str(action))


class LivePrinter(Printer):
    """Keeps one table current, with the last actions below it."""

    def __init__(self, max_nodes: int, live: Live) -> None:
        self._max_nodes = max_nodes
        self._live = live
        self._last: ObservationRound | None = None
        self._actions: list[Action] = []

    def print_round(self, observed: ObservationRound) -> None:
        """Replace the table."""
        self._last = observed
        self._refresh(observed)

    def print_action(self, action: Action) -> None:
        """Add a line."""
        self._actions = [*self._actions, action][-_SHOWN_ACTIONS:]
        if self._last is not None:
            self._refresh(self._last)

    def _refresh(self, observed: ObservationRound) -> None:
        self._live.update(round_table(observed, self._max_nodes, self._actions), refresh=True)


class JsonPrinter(Printer):
    """Prints one document per round: indented, or on one line with an ``indent`` of -1."""

    def __init__(self, indent: int) -> None:
        self._indent = indent

    def finish_round(self, observed: ObservationRound, actions: Sequence[Action] | None) -> None:
        """Print the document."""
        document = msgspec.json.encode(round_document(observed, actions))
        _write(msgspec.json.format(document, indent=self._indent).decode())


def single_printer(max_nodes: int, *, json: bool) -> AbstractContextManager[Printer]:
    """Return the printer for a single round."""
    return nullcontext(JsonPrinter(2) if json else TextPrinter(max_nodes))


def watch_printer(max_nodes: int, *, json: bool) -> AbstractContextManager[Printer]:
    """Return the printer for repeated rounds."""
    if json:
        return nullcontext(JsonPrinter(-1))
    return _live(max_nodes) if sys.stdout.isatty() else nullcontext(LinePrinter(max_nodes))


@contextmanager
def _live(max_nodes: int) -> Iterator[Printer]:
    with Live(auto_refresh=False) as live:
        yield LivePrinter(max_nodes, live)


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
