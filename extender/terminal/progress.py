"""The progress of work that may take long, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Final

from rich.console import Console

DELAY_SECONDS: Final = 2.0


@contextmanager
def show_progress(
    what: str, console: Console | None = None, delay: float = DELAY_SECONDS
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
