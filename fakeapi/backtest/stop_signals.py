"""Signals that stop a command, which then reports or keeps what it has found so far."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

SIGNALED: Final = 128
"""The exit code of a command that was stopped is this plus the number of the signal."""

_STOP_SIGNALS: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_signals(stop: Callable[[], None]) -> Iterator[Sequence[int]]:
    """Call ``stop`` at the first stop signal in the block, and yield its number in a list.

    Another signal ends the process at once.
    """
    handlers = {number: signal.getsignal(number) for number in _STOP_SIGNALS}
    arrived: list[int] = []

    def handle(number: int, _frame: object) -> None:
        restore()
        arrived.append(number)
        stop()

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    for number, handler in handlers.items():
        if handler is not signal.SIG_IGN:  # nohup, or a job in the background
            signal.signal(number, handle)
    try:
        yield arrived
    finally:
        restore()
