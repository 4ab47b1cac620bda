"""Hundreds of clients that send slowly or disconnect, while others keep calling."""

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
from tests.e2e.faults.extender_processes import Callers, Proxy, abort, extender, metric, objects
from tests.extender.conftest import filter_body
from tests.extender.secure_serving.conftest import TlsFiles, files
from tests.extender.secure_serving.raw_clients import post
from tests.faults.table import HALF_OPEN, SLOW_LORIS

__all__ = ["files"]

CONNECTIONS: Final = 64
CROWD: Final = 4
MOST_GROWTH: Final = 24 * 2**20
LIMITS: Final = {"connections": CONNECTIONS, "headerSeconds": 1, "bodySeconds": 1, "idleSeconds": 2}
ASKING: Final = post("/filter", filter_body(None, "node-1"))
HEADER: Final = ASKING.index(b"\r\n\r\n")

Slow = Callable[[int], bytes]
"""Returns the bytes of a step, beginning with 0."""

BODIES: Final = "a body byte by byte"
"""Only these clients exhaust the limit of calls, so that others are refused."""

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


async def send_slowly(port: int, slow: Slow, paced: asyncio.Condition) -> None:
    """Send a step after each answer to another client; reconnect when cut off."""
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


async def notify_steps(callers: Callers, paced: asyncio.Condition) -> None:
    """Start a step of all slow clients after each answer."""
    while True:
        await callers.until(1)
        async with paced:
            paced.notify_all()


async def wait_until_closed(url: str) -> None:
    """Wait until the only connection is the one that reads the metrics."""
    async with asyncio.timeout(30):
        while await metric(url, "reprieve_connections") > 1:
            pass


@pytest.mark.parametrize("slow", WAYS.values(), ids=WAYS)
async def test_slow_clients_do_not_affect_answers_to_others(tmp_path: Path, slow: Slow) -> None:
    async with FakeCluster(run="none") as cluster:
        cluster.load(objects())
        async with extender(tmp_path, cluster.url, limits=LIMITS) as running:
            port = int(running.url.rpartition(":")[2])
            async with Callers(running.url).calling(CROWD) as callers:
                await callers.until(20)
                before, paced = running.resident_bytes, asyncio.Condition()
                tasks = [asyncio.create_task(notify_steps(callers, paced))]
                tasks += [
                    asyncio.create_task(send_slowly(port, slow, paced))
                    for _ in range(SLOW_LORIS.times // len(WAYS))
                ]
                for _ in range(10):
                    await callers.until(20)
                    assert await metric(running.url, "reprieve_connections") <= 2 * CONNECTIONS
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                assert running.resident_bytes - before < MOST_GROWTH
                assert slow is WAYS[BODIES] or callers.counts["refused"] == 0
            assert await metric(running.url, "reprieve_connections_full_total") > 0
            await wait_until_closed(running.url)


async def disconnect(port: int, rng: Random, tls: ssl.SSLContext | None) -> None:
    """Connect, send a part of a call or all of it, and reset the connection."""
    with suppress(OSError):
        if rng.random() < 0.3:
            tls = None  # a broken handshake for a TLS server
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        writer.write(ASKING[: rng.choice([0, 5, HEADER, HEADER + 9, len(ASKING)])])
        for _ in range(rng.randrange(20)):
            await asyncio.sleep(0)
        if rng.random() < 0.2:
            await reader.read(rng.randrange(1, 40))
        abort(writer)


@pytest.mark.parametrize("secured", [False, True], ids=["plain", "tls"])
async def test_disconnected_clients_leave_no_connections(
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
            async with Callers(running.url, tls=context).calling(CROWD) as callers:
                await callers.until(20)
                before = running.resident_bytes
                for _ in range(HALF_OPEN.times // 40):
                    await asyncio.gather(*(disconnect(port, rng, context) for _ in range(10)))
                    await callers.until(4)
                assert running.resident_bytes - before < MOST_GROWTH
                assert callers.counts["refused"] == 0
                if not secured:
                    await disconnect_silently(port, callers)


async def disconnect_silently(port: int, callers: Callers) -> None:
    """Stop sending packets in the middle of calls, without a FIN."""
    async with Proxy(f"127.0.0.1:{port}").listening() as proxy:
        writers = []
        for number in range(HALF_OPEN.times // 4):
            _, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(ASKING[: (0, 5, HEADER, HEADER + 9)[number % 4]])
            writers.append(writer)
        await callers.until(20)
        proxy.stop_forwarding()
        async with asyncio.timeout(30):
            while await metric(callers.url, "reprieve_connections") > CROWD + 1:
                await callers.until(1)
        for writer in writers:
            abort(writer)
