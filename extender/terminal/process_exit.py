"""How the process of a command ends: with one line at most, and with the right exit code.

    cause                                     exit code
    SIGHUP, SIGINT, SIGTERM                   129, 130, 143
    standard output is a pipe without reader  141, as after SIGPIPE, without a line
    standard output cannot be written         1

Servers, ``record`` and ``advise eviction --watch``, which run until then, end with 0 after these
signals once they run (see :func:`extender.terminal.command_line.stop_signal`).

An exception cannot end the process reliably: a signal may arrive while a module is imported, in a
callback of a weak reference, or while the interpreter shuts down, where it is printed and ignored.
So the process ends within the signal handler and within the failed write, and it never runs the
interpreter's shutdown. Entry points call :func:`run_process` before they import anything else, and
this module imports only what the interpreter has loaded.
"""

from __future__ import annotations

import io
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from _typeshed import ReadableBuffer

_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_SIGNALED = 128
"""A shell adds this to the number of the signal that ended a process."""
_MISSING_STREAM_FLAGS = (os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)
"""A closed stdin cannot be read, and a closed stdout cannot be written; stderr is discarded."""


def run_process(command: Callable[[], None]) -> NoReturn:
    """Run a command, and end the process with its exit code.

    ``command`` ends with SystemExit, or returns, which is exit code 0.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a job in the background
            signal.signal(number, _exit_on_signal)
    _replace_streams()
    code: object = None
    try:
        command()
    except SystemExit as ending:
        code = ending.code
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 0)


def _exit_on_signal(number: int, _frame: object) -> None:
    os._exit(_SIGNALED + number)


def _replace_streams() -> None:
    """Open the standard streams anew: without an error for closed ones, and for failed writes."""
    for descriptor, flags in enumerate(_MISSING_STREAM_FLAGS):
        try:
            os.fstat(descriptor)
        except OSError:  # closed; otherwise the next socket would be a standard stream
            os.open(os.devnull, flags)
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the stream of the process
    encoding = "utf-8" if sys.stdout is None else sys.stdout.encoding
    sys.stdout = _text_stream(_Output(1, "w", closefd=False), encoding, os.isatty(1))
    sys.stderr = _text_stream(_Log(2, "w", closefd=False), encoding, line_buffering=True)


def _text_stream(raw: io.FileIO, encoding: str, line_buffering: bool) -> io.TextIOWrapper:  # noqa: FBT001 - as of TextIOWrapper
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=line_buffering
    )


class _Output(io.FileIO):
    """Standard output; the process ends if it cannot be written."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            os._exit(_SIGNALED + signal.SIGPIPE)
        except OSError as error:
            from extender.terminal.program import program_name  # imported on use: start-up time

            sys.stderr.write(
                f"{program_name()}: standard output: cannot be written: {error.strerror}\n"
            )
            sys.stderr.flush()
            os._exit(1)


class _Log(io.FileIO):
    """Standard error; what cannot be written is discarded, so that a full disk ends nothing."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes
