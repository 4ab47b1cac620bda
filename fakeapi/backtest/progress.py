"""The progress of a backtest on stderr: a bar on a terminal, else a line now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from extender.ledger_page.amounts import format_interval
from extender.terminal.program import log_line

_LINES: Final = 10
_SECOND_NS: Final = 10**9


@contextmanager
def unit_progress(total: int, finished: int, console: Console) -> Iterator[Callable[[], None]]:
    """Show how many units have finished, and the time left; yield what to call after each."""
    progress = Progress(
        TextColumn("units"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        speed_estimate_period=inf,
    )
    progress.add_task("units", total=total, completed=finished)
    (task,) = progress.tasks
    progress.advance(task.id, 0)  # the time left is computed from here on

    def advance() -> None:
        before = task.completed
        progress.advance(task.id)
        if progress.disable and _tenths(task.completed, total) != _tenths(before, total):
            log_line(f"{task.completed:.0f} of {total} units{_time_left(task.time_remaining)}")

    with progress:
        yield advance


def _tenths(finished: float, total: int) -> int:
    return int(finished * _LINES) // total


def _time_left(seconds: float | None) -> str:
    return f", about {format_interval(round(seconds * _SECOND_NS))} left" if seconds else ""
