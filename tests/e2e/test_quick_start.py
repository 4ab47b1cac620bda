"""The commands of docs/quick-start.md, run as written, and their documented output."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import stat
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.commands import COMMAND, ROOT
from tests.e2e.clients import programs

PAGE = (ROOT / "docs" / "quick-start.md").read_text()
API, EXTENDER = ("8001", "8888")
RANDOM = {
    r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b": "UID",
    r"\b10\.\d+\.\d+\.\d+\b": "IP",
    r'("at": )"[^"]*"': r"\1TIME",
    r'("(?:requestID|podsVersion)": )"[^"]*"': r"\1ID",
    r'("(?:tookMilliseconds|generation)": )[\d.]+': r"\1NUMBER",
    r"\b(\d+m)?\d+s\b": "AGE",
    r"[ \t]+": " ",
    r" ?\n": "\n",
}
"""Patterns of random parts and their replacements; kubectl pads its columns by them."""


def terminals() -> Iterator[str]:
    """Return the code blocks of the page."""
    for block in re.findall(r"(?:^    .*\n?|^\n(?=    ))+", PAGE, re.MULTILINE):
        yield "".join(line.removeprefix("    ") for line in block.splitlines(keepends=True)).strip()


@dataclass(frozen=True)
class Step:
    """A command, and its output."""

    typed: str
    printed: str


def steps() -> Iterator[Step]:
    """Return the commands of the third terminal."""
    for block in terminals():
        if block.startswith("$ "):
            for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                typed, _, printed = each.partition("\n")
                yield Step(typed, printed)


def plain(text: str) -> str:
    """Replace the random parts of an output."""
    for pattern, name in RANDOM.items():
        text = re.sub(pattern, name, text)
    return text.strip()


class Shell:
    """A shell in the state after the page's first block, with free ports."""

    def __init__(self, folder: Path) -> None:
        reprieve = folder / "reprieve"
        reprieve.write_text(f"#!/bin/sh\nexec '{COMMAND[0]}' {COMMAND[1]} '{COMMAND[2]}' \"$@\"\n")
        reprieve.chmod(reprieve.stat().st_mode | stat.S_IXUSR)
        (folder / "kubectl").symlink_to(programs("1.37")["kubectl"])
        (folder / "python3").symlink_to(sys.executable)
        self._environment = {
            **os.environ,
            "PATH": f"{folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "200",
        }
        with (
            socket.create_server(("127.0.0.1", 0)) as one,
            socket.create_server(("127.0.0.1", 0)) as other,
        ):
            self._ports = {API: one.getsockname()[1], EXTENDER: other.getsockname()[1]}

    async def start(self, line: str) -> Process:
        for port, free in self._ports.items():
            line = re.sub(rf"\b{port}\b", str(free), line)
        return await asyncio.create_subprocess_shell(
            f"exec {line}" if line.startswith("reprieve") else line,
            cwd=ROOT,
            env=self._environment,
            stdout=PIPE,
            stderr=PIPE,
        )

    async def type(self, line: str) -> str:
        """Return the output of a command; it has to succeed."""
        process = await self.start(line)
        out, errors = await process.communicate()
        assert process.returncode == 0, (line, errors.decode())
        return out.decode()

    @asynccontextmanager
    async def terminal(self, line: str) -> AsyncIterator[None]:
        """Run a server in a terminal until the block ends; it must exit with 0."""
        process = await self.start(line)
        assert process.stdout is not None
        assert process.stderr is not None
        told = asyncio.create_task(process.stderr.read())
        try:
            assert (await process.stdout.readline()).startswith(b"listening on http://127.0.0.1:")
            yield
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            code = await process.wait()
        assert code == 0, (await told).decode()

    async def wait_for(self, line: str, printed: str) -> None:
        """Repeat a command, as a user does, until it prints the expected output."""
        async with asyncio.timeout(60):
            while True:
                process = await self.start(line)
                out, _ = await process.communicate()
                if out.decode().strip() == printed:
                    return


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


async def test_the_commands_print_the_documented_output(shell: Shell) -> None:
    install, cluster, extender, *_ = terminals()
    assert install == "make quick-start\n. .venv/bin/activate"
    ready, *rest = steps()
    async with shell.terminal(cluster), shell.terminal(extender):
        await shell.wait_for(ready.typed, ready.printed.strip())
        await shell.type("kubectl -s http://127.0.0.1:8001 wait pod --all --for=condition=Ready")
        assert len(rest) == 7
        for step in rest:
            assert plain(await shell.type(step.typed)) == plain(step.printed), step.typed


def test_the_whole_output_is_compared() -> None:
    shown = "\n".join(f"$ {step.typed}\n{step.printed}" for step in steps())
    blocks = [block for block in terminals() if block.startswith("$ ")]
    assert "".join(shown.split()) == "".join("".join(blocks).split())
