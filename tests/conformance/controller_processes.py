"""The compared processes: our controllers and those of a real kube-controller-manager.

Both print a line that begins with ``running`` when they are at work, ours after one that says where
their webhooks are, and end on SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

_REPRIEVE: Final = (sys.executable, "-c", "from fakeapi.cli import main; main()")
_RUNNING: Final = b"running"
_PATIENCE_SECONDS: Final = 60.0
_LONGEST_LOG_BYTES: Final = 2**24


@dataclass(frozen=True, slots=True)
class Contender:
    """A program that runs controllers, and what its command line begins with."""

    name: str
    command: tuple[str, ...]

    def arguments(self, server: str | Path, run: str) -> Sequence[str]:
        """Return the command line for comma-separated controllers and a server or kubeconfig."""
        flag = "--kubeconfig" if isinstance(server, Path) else "--server"
        return (*self.command, flag, str(server), "--run", run)


@dataclass(frozen=True, slots=True)
class Running:
    """A contender at work."""

    pid: int
    log: IO[bytes]

    def told(self) -> str:
        """Return its log up to now."""
        return _text(self.log)


OURS: Final = Contender("ours", (*_REPRIEVE, "controllers"))
SPREADING: Final = Contender("spreading", (*OURS.command, "--webhook-port", "0"))
"""Ours, with webhooks that pods pass."""


def real(program: Path) -> Contender:
    """Return the real one, without the limits on its requests that a busy cluster would want."""
    return Contender("real", (str(program), "--qps", "-1"))


@asynccontextmanager
async def running(contender: Contender, server: str | Path, run: str) -> AsyncIterator[Running]:
    """Run controllers until the block ends; raises RuntimeError if they begin or end badly."""
    command = contender.arguments(server, run)
    with TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=log)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                line = await _last_of_the_beginning(process)
            if line.startswith(_RUNNING):
                yield Running(process.pid, log)
        finally:
            if process.returncode is None:
                process.terminate()
            code = await process.wait()
        if code or not line.startswith(_RUNNING):
            raise RuntimeError(f"{contender.name} ended with {code}: {_text(log)[-2000:]}")


async def _last_of_the_beginning(process: Process) -> bytes:
    """Read up to the line that says that they are at work; b"" if it does not come."""
    assert process.stdout is not None
    while line := await process.stdout.readline():
        if line.startswith(_RUNNING):
            break
    return line


def _text(log: IO[bytes]) -> str:
    return os.pread(log.fileno(), _LONGEST_LOG_BYTES, 0).decode()
