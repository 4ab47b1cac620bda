"""Clients that send much and finish nothing do not exhaust memory, and leave none behind."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from tests.extender.secure_serving.raw_clients import post
from tests.faults.attacked_listener import BUDGET_MIB
from tests.faults.table import MEMORY_FLOODS

MIB: Final = 2**20
LONG_NAME: Final = "n" * 8 * MIB
NAMED: Final = {"Pod": {"metadata": {"name": LONG_NAME}, "spec": {}}, "NodeNameToMetaVictims": {}}
PACKED: Final = gzip.compress(bytes(63 * MIB))

FLOODS: dict[str, tuple[int, bytes]] = {
    "bodies": (30, post("/preempt", bytes(63 * MIB))[:-1]),
    "packed bodies": (
        30,
        b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(PACKED), PACKED[:-1]),
    ),
    "heads": (
        200,
        b"POST /filter HTTP/1.1\r\n"
        + b"".join(b"X-%d: %s\r\n" % (n, b"x" * 32_000) for n in range(60)),
    ),
    "long names": (12, post("/preempt", json.dumps(NAMED).encode())),
}


class Attacked:
    """The process of the listener."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process = process
        self.port = port

    async def memory(self) -> tuple[int, int]:
        """Return the resident memory now, and at most so far, in MiB."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        now, peak = (await self._process.stdout.readline()).split()
        return int(now), int(peak)


@asynccontextmanager
async def attacked() -> AsyncIterator[Attacked]:
    """Run the listener in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.attacked_listener"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield Attacked(process, int(await process.stdout.readline()))
    finally:
        process.stdin.close()
        await process.wait()


async def flood(port: int, count: int, data: bytes) -> None:
    """Send ``data`` on many connections, as far as the listener reads it, and leave."""

    async def send() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(data)
            await writer.drain()
        except OSError:
            return
        finally:
            writer.transport.abort()

    await asyncio.gather(*(send() for _ in range(count)))


def test_the_table_counts_the_floods() -> None:
    assert len(FLOODS) == MEMORY_FLOODS.runs


@pytest.mark.slow
@pytest.mark.parametrize(("count", "data"), FLOODS.values(), ids=FLOODS)
async def test_memory_stays_within_the_budget_and_is_returned(count: int, data: bytes) -> None:
    async with attacked() as listener:
        before, _ = await listener.memory()
        await flood(listener.port, count, data)
        after, peak = await listener.memory()
        assert peak < before + 4 * BUDGET_MIB
        assert after < 1.2 * before
