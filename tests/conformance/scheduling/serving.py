"""``reprieve serve`` as a process that can be stopped and started again on the same port."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

from tests.commands import COMMAND, wait_ready

_LISTENING: Final = "listening on "


@dataclass(slots=True)
class Served:
    """An extender: its kubeconfig, configuration file and URL."""

    kubeconfig: Path
    config: Path
    url: str = ""
    _process: Process | None = field(default=None)

    async def start(self) -> None:
        """Start it, on the same port as before, and return when it is ready."""
        files = ("--kubeconfig", str(self.kubeconfig), "--config", str(self.config))
        flags = (*files, "--port", str(urlsplit(self.url).port or 0))
        with self.config.with_suffix(".log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *COMMAND, "serve", *flags, stdout=PIPE, stderr=log
            )
        self._process = process
        line = (await process.stdout.readline()).decode() if process.stdout else ""
        if not line.startswith(_LISTENING):
            raise RuntimeError(f"reprieve serve did not start: {line!r}")
        self.url = line.removeprefix(_LISTENING).strip()
        await wait_ready(self.url)

    async def stop(self) -> None:
        """End it."""
        await self._end(Process.terminate)

    async def kill(self) -> None:
        """End it by SIGKILL."""
        await self._end(Process.kill)

    async def _end(self, signal: Callable[[Process], None]) -> None:
        if self._process is not None and self._process.returncode is None:
            signal(self._process)
            await self._process.wait()


@asynccontextmanager
async def served(kubeconfig: Path, upstream: str, **settings: Any) -> AsyncIterator[Served]:
    """Run an extender until the block ends; ``settings`` are those of its configuration file."""
    with TemporaryDirectory(prefix="serve-") as directory:
        config = Path(directory) / "config.json"
        config.write_text(json.dumps({"upstream": upstream, **settings}))
        extender = Served(kubeconfig, config)
        try:
            await extender.start()
            yield extender
        finally:
            await extender.stop()
