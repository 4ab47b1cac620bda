"""A real component as a process that logs to a file, and can be killed and started again."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_SHOWN_BYTES: Final = 4_000


class ProcessEndedError(RuntimeError):
    """The process ended by itself; the text is the end of its log."""


@dataclass(slots=True)
class LoggedProcess:
    """A process, with what its environment has beyond ours."""

    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    _process: Process | None = None

    @property
    def pid(self) -> int:
        """The ID of the process, which has been started."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start it."""
        with self.log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self.command, stdout=output, stderr=output, env={**os.environ, **self.environment}
            )

    async def kill(self) -> None:
        """End it by SIGKILL."""
        await self._end(Process.kill)

    async def stop(self) -> None:
        """End it; raise ProcessEndedError if it has ended by itself."""
        assert self._process is not None
        if self._process.returncode is not None:
            raise ProcessEndedError(self.log.read_bytes()[-_SHOWN_BYTES:].decode())
        await self._end(Process.terminate)

    async def _end(self, signal: Callable[[Process], None]) -> None:
        assert self._process is not None
        signal(self._process)
        await self._process.wait()


@asynccontextmanager
async def logged(process: LoggedProcess) -> AsyncIterator[LoggedProcess]:
    """Run a process until the block ends; raise ProcessEndedError if it ends by itself."""
    await process.start()
    try:
        yield process
    finally:
        await process.stop()
