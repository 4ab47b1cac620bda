"""SIGKILL and SIGTERM at any moment under load: no answer is wrong, partial or lost."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from random import Random

from fakeapi.testing.fake_cluster import FakeCluster
from tests.e2e.faults.extender_processes import CALLS, RIGHT, Callers, extender, metric, objects
from tests.extender.secure_serving.raw_clients import Client
from tests.faults.table import KILLED, STOPPED


async def begun_calls(port: int, count: int) -> list[Client]:
    """Begin calls whose header the extender has read, as its 100 Continue shows."""
    clients = []
    for _ in range(count):
        client = Client(*await asyncio.open_connection("127.0.0.1", port))
        body = CALLS["filter"]
        head = f"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        await client.send(f"{head}Expect: 100-continue\r\n\r\n".encode() + body[:9])
        assert (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        clients.append(client)
    return clients


async def test_killed_at_any_moment(tmp_path: Path) -> None:
    async with FakeCluster(run="none") as cluster:
        cluster.load(objects())
        for seed in KILLED.seeds:
            async with extender(tmp_path, cluster.url) as running:
                async with Callers(running.url).calling() as callers:
                    await callers.until(Random(seed).randrange(1, 120))
                    running.process.kill()
                    await running.process.wait()
                    await callers.until(4, "broken")
                assert running.process.returncode == -signal.SIGKILL
                assert callers.counts["refused"] == 0


async def test_sigterm_at_any_moment(tmp_path: Path) -> None:
    async with FakeCluster(run="none") as cluster:
        cluster.load(objects())
        for seed in STOPPED.seeds:
            async with extender(tmp_path, cluster.url) as running:
                async with Callers(running.url).calling() as callers:
                    await callers.until(Random(seed).randrange(1, 120))
                    under_way = await begun_calls(int(running.url.rpartition(":")[2]), 5)
                    running.process.send_signal(signal.SIGTERM)
                    await callers.until(4, "broken")
                    for client in under_way:
                        await client.send(CALLS["filter"][9:])
                        answer = await client.answer()
                        assert answer.startswith("HTTP/1.1 200 "), answer
                        assert json.loads(answer.partition("\r\n\r\n")[2]) == RIGHT["filter"]
                        client.close()
                assert callers.counts["refused"] == 0
                await running.ended()  # a second signal would end calls


async def test_its_memory_does_not_grow_after_a_restart(tmp_path: Path) -> None:
    async with FakeCluster(run="none") as cluster:
        cluster.load(objects())
        async with extender(tmp_path, cluster.url) as running:
            async with Callers(running.url).calling() as callers:
                await callers.until(400)
                before = running.resident_bytes
                await callers.until(1200)
            assert running.resident_bytes - before < 8 * 2**20
            assert await metric(running.url, "reprieve_requests_total") >= 1600
