"""The command line run as people and scripts run it: in processes of its own."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.builders import encoded

ROOT = Path(__file__).parents[1]
COMMAND = (sys.executable, "-c", "from fakeapi.cli import main; main()")


@dataclass(frozen=True)
class Done:
    """A process that has ended."""

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


def written(tmp_path: Path, name: str, *documents: Any) -> str:
    path = tmp_path / name
    path.write_bytes(b"\n".join(map(encoded, documents)))
    return str(path)
