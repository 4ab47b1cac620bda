"""The command line in its own processes, files for it, and the text of its tables."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import aiohttp
from rich.console import Console, RenderableType

from tests.builders import encoded

ROOT = Path(__file__).parents[1]
COMMAND = (sys.executable, "-c", "from fakeapi.cli import main; main()")


@dataclass(frozen=True)
class Done:
    """The result of a process."""

    code: int | None
    out: str
    err: str


async def start(*arguments: str) -> Process:
    return await asyncio.create_subprocess_exec(
        *COMMAND, *arguments, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )


async def reprieve(*arguments: str, stdin: bytes = b"") -> Done:
    process = await start(*arguments)
    out, err = await process.communicate(stdin)
    return Done(process.returncode, out.decode(), err.decode())


async def reprieve_json(*arguments: str, stdin: bytes = b"", code: int = 0) -> Any:
    """Run a command that must end with ``code`` without warnings; return its decoded output."""
    done = await reprieve(*arguments, "-o", "json", stdin=stdin)
    assert (done.code, done.err) == (code, "")
    return json.loads(done.out)


@asynccontextmanager
async def serving(*arguments: str, scheme: str = "http") -> AsyncIterator[str]:
    """Run a server and yield its URL; it must exit with 0 after SIGTERM."""
    port = () if "--config" in arguments else ("--port", "0")
    process = await start(*arguments, *port)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(20):
            line = (await process.stdout.readline()).decode()
        assert line.startswith(f"listening on {scheme}://127.0.0.1:"), await process.communicate()
        yield line.split()[-1]
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()
    assert process.returncode == 0, errors


async def wait_ready(url: str, seconds: float = 60.0) -> None:
    """Return once the extender at ``url`` is ready; raise TimeoutError if that takes too long."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(seconds):
        while True:
            async with session.get(f"{url}/readyz") as response:
                if response.status == 200:
                    return
            await asyncio.sleep(0.05)


def written(tmp_path: Path, name: str, *documents: Any) -> str:
    path = tmp_path / name
    path.write_bytes(b"\n".join(map(encoded, documents)))
    return str(path)


def rendered(*renderables: RenderableType, width: int = 120) -> str:
    """Return the text of tables on a console of this width."""
    console = Console(file=StringIO(), width=width)
    for each in renderables:
        console.print(each)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()
