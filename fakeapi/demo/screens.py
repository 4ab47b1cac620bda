"""Output of the demo while it runs: a live display, or plain lines.

A terminal with cursor control shows the live display; a pipe, a file and a dumb terminal get lines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, Protocol

from rich.console import Console
from rich.live import Live

from fakeapi.demo.chapters import DemoStep
from fakeapi.demo.sights import ObservedState
from fakeapi.demo.tables import render_screen
from fakeapi.scenarios.loop import LoopScenario

_WIDTH: Final = 140
_SHOWN_LINES: Final = 10


class Screen(Protocol):
    """Shows the progress of the demo."""

    def show(self, step: DemoStep, state: ObservedState, changes: Sequence[str]) -> None:
        """Show an observed state and its changes."""
        ...


class LineScreen:
    """Prints the changes, each line with the seconds on the cluster's clock."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._chapter: DemoStep | None = None

    def show(self, step: DemoStep, state: ObservedState, changes: Sequence[str]) -> None:
        """Print the changes; a step's headline precedes its first line."""
        headline = () if step is self._chapter else (f"== {step.value}",)
        self._chapter = step
        for line in (*headline, *changes):
            self._console.print(f"{state.seconds:5.1f} s  {line}", markup=False, soft_wrap=True)


class LiveScreen:
    """Updates a live display."""

    def __init__(self, scenario: LoopScenario, live: Live) -> None:
        self._story = scenario
        self._live = live
        self._lines: deque[str] = deque(maxlen=_SHOWN_LINES)

    def show(self, step: DemoStep, state: ObservedState, changes: Sequence[str]) -> None:
        """Update the display."""
        self._lines.extend(changes)
        self._live.update(render_screen(step, state, self._story, tuple(self._lines)), refresh=True)


def output_console() -> Console:
    """Return a console on stdout; if it is not a terminal, its width fits the tables."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(width=_WIDTH, highlight=False)


def open_screen(console: Console, scenario: LoopScenario) -> AbstractContextManager[Screen]:
    """Return the screen that a console supports."""
    if console.is_terminal and not console.is_dumb_terminal:
        return _live(console, scenario)
    return nullcontext(LineScreen(console))


@contextmanager
def _live(console: Console, story: LoopScenario) -> Iterator[Screen]:
    with Live(console=console, auto_refresh=False) as live:
        yield LiveScreen(story, live)
