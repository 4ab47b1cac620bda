"""A server that may open few files refuses to start, or logs one line while it is out of them."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from tests.faults.processes import Start, finish, start
from tests.faults.table import OPEN_FILES

SERVE = ("serve", "--embedded", "demo", "--port", "0")
FEW = "64"
CLIENTS = OPEN_FILES.runs


def limited(soft: str, hard: str) -> Start:
    """Start a process with these limits of open files."""
    script = f'ulimit -Sn {soft} && ulimit -Hn {hard} && exec "$@"'
    return Start(program=("/bin/sh", "-c", script, "sh", *Start().program))


def soft_limit(pid: int) -> str:
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return next(line for line in lines if line.startswith("Max open files")).split()[3]


async def test_a_limit_below_the_connections_is_one_error_at_the_start() -> None:
    done = await finish(await start(SERVE, limited(FEW, FEW)))
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "reprieve: limits.connections: 256 needs 576 open files, and this process may open 64; "
        "expected fewer connections, or a higher limit (ulimit -n)\n"
    )


async def test_the_soft_limit_is_raised() -> None:
    process = await start(SERVE, limited(FEW, "4096"))
    assert process.stdout is not None
    assert (await process.stdout.readline()).startswith(b"listening on ")
    assert soft_limit(process.pid) == "576"
    process.terminate()
    assert (await finish(process)).code == 0


async def test_a_server_out_of_files_logs_one_line_and_recovers() -> None:
    """Fakeapi has no limit of connections, so it runs out; a later call is answered."""
    process = await start(("fakeapi", "--port", "0"), limited(FEW, FEW))
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().split()[-1]
    where = urlsplit(url)
    async with AsyncExitStack() as stack:
        for _ in range(CLIENTS):
            _, writer = await asyncio.open_connection(where.hostname, where.port)
            stack.enter_context(closing(writer))
        assert process.stderr is not None
        line = json.loads(await process.stderr.readline())
        assert (line["event"], line["problem"]) == (
            "connections_not_accepted",
            "Too many open files",
        )
    async with aiohttp.ClientSession(url) as session, session.get("/livez") as answer:
        assert answer.status == 200
    process.terminate()
    done = await finish(process)
    assert (done.code, done.err.count("\n")) == (0, 0), done.err
