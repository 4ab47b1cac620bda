"""The compared processes: our controllers and those of a real kube-controller-manager.

Both print a line that begins with ``running`` when they have started, ours after one with the
address of their webhooks, and end on SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

from tests.commands import COMMAND

_RUNNING: Final = b"running"
_PATIENCE_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05
_LONGEST_LOG_BYTES: Final = 2**24


@dataclass(frozen=True, slots=True)
class Controllers:
    """A program that runs controllers, and the beginning of its command line."""

    name: str
    command: tuple[str, ...]

    def arguments(self, server: str | Path, run: str) -> Sequence[str]:
        """Return the command line for comma-separated controllers and a server or kubeconfig."""
        flag = "--kubeconfig" if isinstance(server, Path) else "--server"
        return (*self.command, flag, str(server), "--run", run)


@dataclass(frozen=True, slots=True)
class Running:
    """Controllers that run as a process."""

    pid: int
    log: IO[bytes]

    def read_log(self) -> str:
        """Return its log up to now."""
        return _text(self.log)

    async def wait_for_log(self, text: str) -> None:
        """Return once the log contains a text; raise TimeoutError if it does not in time."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while text not in self.read_log():  # noqa: ASYNC110 another process has no event
                await asyncio.sleep(_POLL_SECONDS)


OURS: Final = Controllers("ours", (*COMMAND, "controllers"))
SPREADING: Final = Controllers("spreading", (*OURS.command, "--webhook-port", "0"))
"""Ours, with the webhooks of WorkloadSpreads."""


def real(program: Path) -> Controllers:
    """Return the real controllers, without a limit on the rate of their requests."""
    return Controllers("real", (str(program), "--qps", "-1"))


@asynccontextmanager
async def running(controllers: Controllers, server: str | Path, run: str) -> AsyncIterator[Running]:
    """Run controllers until the block ends; raise RuntimeError if they fail to start or to end."""
    command = controllers.arguments(server, run)
    with TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=log)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                line = await _started(process)
            if line.startswith(_RUNNING):
                yield Running(process.pid, log)
        finally:
            if process.returncode is None:
                process.terminate()
            code = await process.wait()
        if code or not line.startswith(_RUNNING):
            raise RuntimeError(f"{controllers.name} ended with {code}: {_text(log)[-2000:]}")


async def _started(process: Process) -> bytes:
    """Return the line that reports that they have started; b"" if it never comes."""
    assert process.stdout is not None
    while line := await process.stdout.readline():
        if line.startswith(_RUNNING):
            break
    return line


def _text(log: IO[bytes]) -> str:
    return os.pread(log.fileno(), _LONGEST_LOG_BYTES, 0).decode()
