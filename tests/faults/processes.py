"""Processes of the command line, with default signals and given streams, and their results."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.commands import COMMAND, ROOT, Done

_IGNORED_BY_SOME_PARENTS = (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM)
_POLL_SECONDS = 0.002
_IDLE_SECONDS = 0.0001
_IDLE_POLLS = 200


@dataclass(frozen=True)
class Start:
    """How a process starts: shell redirections, changes of the environment, its program."""

    redirections: str = ""
    environment: Mapping[str, str | None] = field(default_factory=dict)
    program: tuple[str, ...] = COMMAND
    stdout: int = PIPE


async def start(arguments: tuple[str, ...], how: Start = Start()) -> Process:
    """Start a command without a terminal, in a session of its own."""
    changed = {**os.environ, **how.environment}
    return await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", f'exec "$@" {how.redirections}', "sh"),
        *(*how.program, *arguments),
        cwd=ROOT,
        env={name: value for name, value in changed.items() if value is not None},
        stdin=DEVNULL,
        stdout=how.stdout,
        stderr=PIPE,
        start_new_session=True,
        preexec_fn=_reset_signals,
    )


def _reset_signals() -> None:
    for number in _IGNORED_BY_SOME_PARENTS:
        signal.signal(number, signal.SIG_DFL)


async def finish(process: Process) -> Done:
    """Return the result of a process once it has ended."""
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    return Done(process.returncode, (out or b"").decode(), err.decode())


async def wait_until(process: Process, is_reached: Callable[[Path], bool]) -> None:
    """Return when a condition on the directory in /proc holds, or the process has ended."""
    directory = Path(f"/proc/{process.pid}")
    with suppress(OSError):
        while process.returncode is None and not is_reached(directory):  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)  # another process has no event


def handles_signals(directory: Path) -> bool:
    """Return whether the command line has begun, which handles SIGTERM; Python does not."""
    found = re.search(r"^SigCgt:\s*(\w+)$", (directory / "status").read_text(), re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> (signal.SIGTERM - 1) & 1)


@dataclass
class HasUsed:
    """A condition: the process has used so much processor time, or has often been idle."""

    seconds: float
    _used: float = 0.0
    _idle_polls: int = 0

    def __call__(self, directory: Path) -> bool:
        used = _processor_seconds(directory)
        self._idle_polls += used - self._used < _IDLE_SECONDS
        self._used = used
        return used >= self.seconds or self._idle_polls >= _IDLE_POLLS


def _processor_seconds(directory: Path) -> float:
    return int((directory / "schedstat").read_text().split()[0]) / 1e9


def unstructured_lines(errors: str) -> list[str]:
    """Return the lines of stderr that are no log lines in JSON."""
    return [line for line in errors.splitlines() if not _is_log_line(line)]


def _is_log_line(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
