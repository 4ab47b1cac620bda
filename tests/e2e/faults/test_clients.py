"""Clients that send slowly, or vanish, by the hundred, while others keep calling."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

import pytest

from fakeapi.testing.fake_cluster import FakeCluster
from tests.e2e.faults.extender_processes import Crowd, Line, abort, extender, figure, objects
from tests.extender.conftest import filter_body
from tests.extender.secure_serving.conftest import TlsFiles, files
from tests.extender.secure_serving.raw_clients import post
from tests.faults.table import HALF_OPEN, SLOW_LORIS

__all__ = ["files"]

CONNECTIONS: Final = 64
CROWD: Final = 4
MOST_GROWTH: Final = 24 * 2**20
LIMITS: Final = {
    "connections": CONNECTIONS,
    "headerSeconds": 1,
    "bodySeconds": 1,
    "idleSeconds": 2,
}
ASKING: Final = post("/filter", filter_body(None, "node-1"))
HEADER: Final = ASKING.index(b"\r\n\r\n")

Slow = Callable[[int], bytes]
"""Gives the bytes of a step, beginning with 0."""

BODIES: Final = "a body byte by byte"
"""The only way to use up the limit of calls, so that others are refused."""

WAYS: Final[dict[str, Slow]] = {
    "a header byte by byte": lambda step: ASKING[step % HEADER : step % HEADER + 1],
    "headers without an end": lambda step: b"X-%d: 1\r\n" % step if step else b"GET / HTTP/1.1\r\n",
    BODIES: lambda step: (
        ASKING[HEADER + 3 + step : HEADER + 4 + step] if step else ASKING[: HEADER + 4]
    ),
    "calls whose answers are not read": lambda _: (
        b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 9
    ),
    "nothing at all": lambda _: b"",
}


async def dribble(port: int, slow: Slow, paced: asyncio.Condition) -> None:
    """Send a step whenever another client was answered; connect anew when cut off."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**10)
            try:
                for step in range(10**6):
                    writer.write(slow(step))
                    async with paced:
                        await paced.wait()
                    if reader.at_eof() or writer.is_closing():
                        break
            finally:
                abort(writer)


async def pace(crowd: Crowd, paced: asyncio.Condition) -> None:
    """Have everybody go a step for each answer."""
    while True:
        await crowd.until(1)
        async with paced:
            paced.notify_all()


async def quiet(url: str) -> None:
    """Wait until the only connection is the one that reads the metrics."""
    async with asyncio.timeout(30):
        while await figure(url, "reprieve_connections") > 1:
            pass


@pytest.mark.parametrize("slow", WAYS.values(), ids=WAYS)
async def test_slow_clients_cost_others_no_answer(tmp_path: Path, slow: Slow) -> None:
    async with FakeCluster(run="none") as cluster:
        cluster.load(objects())
        async with extender(tmp_path, cluster.url, limits=LIMITS) as running:
            port = int(running.url.rpartition(":")[2])
            async with Crowd(running.url).calling(CROWD) as crowd:
                await crowd.until(20)
                before, paced = running.resident_bytes, asyncio.Condition()
                company = [asyncio.create_task(pace(crowd, paced))]
                company += [
                    asyncio.create_task(dribble(port, slow, paced))
                    for _ in range(SLOW_LORIS.times // len(WAYS))
                ]
                for _ in range(10):
                    await crowd.until(20)
                    assert await figure(running.url, "reprieve_connections") <= 2 * CONNECTIONS
                for task in company:
                    task.cancel()
                await asyncio.gather(*company, return_exceptions=True)
                assert running.resident_bytes - before < MOST_GROWTH
                assert slow is WAYS[BODIES] or crowd.told["refused"] == 0
            assert await figure(running.url, "reprieve_connections_full_total") > 0
            await quiet(running.url)


async def vanish(port: int, rng: Random, tls: ssl.SSLContext | None) -> None:
    """Connect, say some of a call or all of it, and be gone, with a reset."""
    with suppress(OSError):
        if rng.random() < 0.3:
            tls = None  # what TLS takes for a broken handshake
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        writer.write(ASKING[: rng.choice([0, 5, HEADER, HEADER + 9, len(ASKING)])])
        for _ in range(rng.randrange(20)):
            await asyncio.sleep(0)
        if rng.random() < 0.2:
            await reader.read(rng.randrange(1, 40))
        abort(writer)


@pytest.mark.parametrize("secured", [False, True], ids=["plain", "tls"])
async def test_vanished_clients_leave_nothing_behind(
    tmp_path: Path, files: TlsFiles, *, secured: bool
) -> None:
    tls = {"certificate": files.tls.certificate, "key": files.tls.key} if secured else None
    context = files.client() if secured else None
    async with FakeCluster(run="none") as cluster:
        cluster.load(objects())
        async with extender(
            tmp_path, cluster.url, limits=LIMITS, trusted=context, tls=tls
        ) as running:
            port, rng = int(running.url.rpartition(":")[2]), Random(7)
            async with Crowd(running.url, tls=context).calling(CROWD) as crowd:
                await crowd.until(20)
                before = running.resident_bytes
                for _ in range(HALF_OPEN.times // 40):
                    await asyncio.gather(*(vanish(port, rng, context) for _ in range(10)))
                    await crowd.until(4)
                assert running.resident_bytes - before < MOST_GROWTH
                assert crowd.told["refused"] == 0
                if not secured:
                    await silently(port, crowd)


async def silently(port: int, crowd: Crowd) -> None:
    """Vanish in the middle of everything: no packet arrives any more, not even a FIN."""
    async with Line(f"127.0.0.1:{port}").held() as line:
        writers = []
        for number in range(HALF_OPEN.times // 4):
            _, writer = await asyncio.open_connection("127.0.0.1", line.port)
            writer.write(ASKING[: (0, 5, HEADER, HEADER + 9)[number % 4]])
            writers.append(writer)
        await crowd.until(20)
        line.fall_silent()
        async with asyncio.timeout(30):
            while await figure(crowd.url, "reprieve_connections") > CROWD + 1:
                await crowd.until(1)
        for writer in writers:
            abort(writer)
