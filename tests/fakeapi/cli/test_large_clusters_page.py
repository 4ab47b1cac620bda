"""The commands of docs/large-clusters.md, run as written, on a smaller cluster."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import yaml

from tests.architecture.test_documented_sessions import blocks, is_shown
from tests.commands import COMMAND, ROOT

PAGE: Final = (ROOT / "docs" / "large-clusters.md").read_text()
SMALLER: Final = {"10000 20": "20 5", "200000": "100", "10000": "20"}
PATIENCE_SECONDS: Final = 60.0


def smaller(text: str) -> str:
    """Return a text with the sizes of the smaller cluster."""
    return re.sub("|".join(SMALLER), lambda found: SMALLER[found[0]], text)


def files() -> dict[str, str]:
    return {name: text for name, text in blocks(PAGE) if "." in name}


def steps() -> Iterator[tuple[str, str]]:
    """Yield the commands of the page with their output."""
    for _, block in blocks(PAGE):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            typed, _, printed = step.partition("\n")
            yield typed, smaller(printed)


class Shell:
    """Commands in a folder with the files of the page; one server runs at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._url = "http://127.0.0.1:8001"
        self._server: Process | None = None
        for name, text in files().items():
            (folder / name).write_text(text)

    async def run(self, typed: str) -> str:
        """Run a command, and return what it prints; a server's first line."""
        if typed.startswith("reprieve fakeapi "):
            return await self._serve(typed)
        command = smaller(typed).replace("http://127.0.0.1:8001", self._url)
        command = command.replace("python ", f"'{sys.executable}' ")
        process = await asyncio.create_subprocess_shell(command, cwd=self._folder, stdout=PIPE)
        out, _ = await process.communicate()
        return out.decode().replace(self._url, "http://127.0.0.1:8001")

    async def stop(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.send_signal(signal.SIGTERM)
            await self._server.communicate()

    async def _serve(self, typed: str) -> str:
        await self.stop()
        arguments = typed.replace("--port 8001", "--port 0").split()[1:]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._server = await asyncio.create_subprocess_exec(
            *COMMAND, *arguments, cwd=self._folder, env=environment, stdout=PIPE
        )
        assert self._server.stdout is not None
        line = (await self._server.stdout.readline()).decode()
        self._url = line.split()[-1]
        return line.replace(self._url, "http://127.0.0.1:8001")


@asynccontextmanager
async def shell(folder: Path) -> AsyncIterator[Shell]:
    opened = Shell(folder)
    try:
        yield opened
    finally:
        await opened.stop()


async def test_the_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    async with shell(tmp_path) as opened, asyncio.timeout(PATIENCE_SECONDS):
        for typed, shown in steps():
            while not is_shown(printed := await opened.run(typed), shown):
                assert typed.startswith("curl "), printed  # the kubelets need a moment


def test_the_configuration_is_one_of_a_kube_scheduler() -> None:
    assert yaml.safe_load(files()["scheduler.yaml"])["kind"] == "KubeSchedulerConfiguration"
