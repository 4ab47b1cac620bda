"""``reprieve serve`` as a process that can be ended and started again at the same place."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

_REPRIEVE: Final = (sys.executable, "-c", "from fakeapi.cli import main; main()")
_LISTENING: Final = "listening on "
_PATIENCE_SECONDS: Final = 60.0
_BETWEEN_SECONDS: Final = 0.02


@dataclass(slots=True)
class Served:
    """An extender: where it listens, and how it was asked to."""

    kubeconfig: Path
    config: Path
    url: str = ""
    _process: Process | None = field(default=None)

    async def start(self) -> None:
        """Start it, at the same place if it has been there before, and return when it is ready."""
        port = urlsplit(self.url).port or 0
        leading = ("--kubeconfig", str(self.kubeconfig))
        flags = (*leading, "--config", str(self.config), "--port", str(port))
        with self.config.with_suffix(".log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *_REPRIEVE, "serve", *flags, stdout=PIPE, stderr=log
            )
        self._process = process
        line = (await process.stdout.readline()).decode() if process.stdout else ""
        if not line.startswith(_LISTENING):
            raise RuntimeError(f"reprieve serve did not start: {line!r}")
        self.url = line.removeprefix(_LISTENING).strip()
        async with asyncio.timeout(_PATIENCE_SECONDS), aiohttp.ClientSession() as http:
            await _ready(http, self.url)

    async def stop(self) -> None:
        """End it."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()


async def _ready(http: aiohttp.ClientSession, url: str) -> None:
    while True:
        async with http.get(f"{url}/readyz") as answer:
            if answer.status == 200:
                return
        await asyncio.sleep(_BETWEEN_SECONDS)


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
