"""Progress is shown on terminals, for work that takes long."""

from __future__ import annotations

from io import StringIO
from threading import Event

from rich.console import Console

from extender.terminal.output import show_progress


class Terminal(StringIO):
    """A file that signals the first write."""

    def __init__(self) -> None:
        super().__init__()
        self.is_written = Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        self.is_written.set()
        return written


def test_long_work_is_shown_on_a_terminal() -> None:
    terminal = Terminal()
    with show_progress("reading pods.yaml", Console(file=terminal, force_terminal=True), delay=0):
        assert terminal.is_written.wait(timeout=30)
    assert "reading pods.yaml" in terminal.getvalue()


def test_short_work_is_not_shown() -> None:
    terminal = Terminal()
    with show_progress("reading pods.yaml", Console(file=terminal, force_terminal=True)):
        pass
    assert "reading" not in terminal.getvalue()


def test_nothing_is_shown_elsewhere() -> None:
    file = Terminal()
    with show_progress("reading pods.yaml", Console(file=file, force_terminal=False), delay=0):
        pass
    assert file.getvalue() == ""
