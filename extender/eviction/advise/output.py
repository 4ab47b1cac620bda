"""Output of rounds: a table, a refreshed table, lines, one document, or one document per line.

        once            watched, on a terminal    watched, elsewhere
table   a table         a table, refreshed        a line for each node and round
wide    the same, with all nodes
json    one document    one document a line       one document a line
yaml    one document    a stream of documents     a stream of documents
name    the nodes at risk, as node/NAME
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum
from functools import partial
from typing import Final

import msgspec
from rich.console import Group
from rich.live import Live
from rich.text import Text

from extender.eviction.advise.documents import RoundDocument, round_document
from extender.eviction.advise.executor import Action
from extender.eviction.advise.rounds import ObservationRound
from extender.eviction.advise.tables import round_lines, round_table, round_time
from extender.terminal.output import OutputFormat, no_page, no_rows, stdout_console

_SHOWN_ACTIONS: Final = 10


class AdviseMode(Enum):
    """What rounds do about nodes at risk."""

    OBSERVE = "observes nodes; nothing is changed"
    DRY_RUN = "dry run: prints evictions and changes nothing; --yes takes them"
    LIVE = "live: cordons nodes and evicts pods"


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
        self._console = stdout_console()

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
    """Keeps one table current, below the mode and the time of the round, above the last actions."""

    def __init__(self, mode: AdviseMode, max_nodes: int, live: Live) -> None:
        self._mode = mode
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
        heading = Text(f"{round_time(observed)} {self._mode.value}", style="dim")
        table = round_table(observed, self._max_nodes, self._actions)
        self._live.update(Group(heading, table), refresh=True)


class DocumentPrinter(Printer):
    """Prints one document for each round, as ``encode`` writes it."""

    def __init__(self, encode: Callable[[RoundDocument], str]) -> None:
        self._encode = encode

    def finish_round(self, observed: ObservationRound, actions: Sequence[Action] | None) -> None:
        """Print the document."""
        _write(self._encode(round_document(observed, actions)))


class NamePrinter(Printer):
    """Prints the nodes at risk, one a line."""

    def print_round(self, observed: ObservationRound) -> None:
        """Print the names."""
        for forecast in observed.forecasts:
            if forecast.is_at_risk:
                _write(f"node/{forecast.node}")


def single_printer(output: OutputFormat, max_nodes: int) -> AbstractContextManager[Printer]:
    """Return the printer for a single round."""
    if output is OutputFormat.JSON:
        return nullcontext(DocumentPrinter(partial(_json, indent=2)))
    return nullcontext(_other_printer(output) or TextPrinter(_most(output, max_nodes)))


def watch_printer(
    output: OutputFormat, max_nodes: int, mode: AdviseMode
) -> AbstractContextManager[Printer]:
    """Return the printer for repeated rounds."""
    if output is OutputFormat.JSON:
        return nullcontext(DocumentPrinter(partial(_json, indent=-1)))
    most = _most(output, max_nodes)
    if (other := _other_printer(output)) is not None:
        return nullcontext(other)
    if sys.stdout.isatty():
        return _live(mode, most)
    _write(mode.value)
    return nullcontext(LinePrinter(most))


def _other_printer(output: OutputFormat) -> Printer | None:
    """Return the printer of YAML or names; None for tables. Raise OutputError for CSV and HTML."""
    if output is OutputFormat.CSV:
        no_rows()
    if output is OutputFormat.HTML:
        no_page()
    if output is OutputFormat.YAML:
        return DocumentPrinter(lambda found: f"---\n{msgspec.yaml.encode(found).decode().rstrip()}")
    return NamePrinter() if output is OutputFormat.NAME else None


def _most(output: OutputFormat, max_nodes: int) -> int:
    return sys.maxsize if output is OutputFormat.WIDE else max_nodes


def _json(document: RoundDocument, indent: int) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=indent).decode()


@contextmanager
def _live(mode: AdviseMode, max_nodes: int) -> Iterator[Printer]:
    with Live(auto_refresh=False) as live:
        yield LivePrinter(mode, max_nodes, live)


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
