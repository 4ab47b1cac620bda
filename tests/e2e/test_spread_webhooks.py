"""Two processes with webhooks behind one address, and many pods at once."""

from __future__ import annotations

import asyncio
import signal
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import cycle
from pathlib import Path

import aiohttp

from extender.controllers.process.webhook_server import generate_certificate
from fakeapi import FakeCluster
from tests.builders.workloadspread import Document, pod_of, spread_json
from tests.commands import start
from tests.extender.controllers.webhooks.stages import KRUISE, injection, registered

PODS = "/api/v1/namespaces/default/pods"
SPREADS = "/apis/apps.kruise.io/v1beta1/namespaces/default/workloadspreads"

THREE = ({"name": "a", "maxReplicas": 60}, {"name": "b", "maxReplicas": 60}, {"name": "c"})
POD_COUNT = 200
REASONS = ("the object has been modified", "context deadline exceeded")
"""Accepted reasons for refusing a pod: conflicts, or timeouts on a busy machine."""


@asynccontextmanager
async def balanced() -> AsyncIterator[tuple[str, list[int]]]:
    """Yield an address that forwards connections to the ports of a list in turns, and the list."""
    ports: list[int] = []
    turns = cycle(range(1_000_000))

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        port = ports[next(turns) % len(ports)]
        behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_pass_on(reader, behind_writer), _pass_on(behind_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", ports


async def _pass_on(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def answering(cluster: FakeCluster, url: str, certs: Path) -> AsyncIterator[int]:
    """Run a process with webhooks, and yield its port; it must exit with 0."""
    of = ("--server", cluster.url, "--run", "workloadspread", "--webhook-port", "0")
    shared = ("--webhook-url", url, "--webhook-certs", str(certs))
    process = await start("controllers", *of, *shared)
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    try:
        yield int(line.rpartition(":")[2])
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()
    assert process.returncode == 0, errors


async def test_many_concurrent_pods_fill_the_subsets_exactly(
    tmp_path: Path,
) -> None:
    made = generate_certificate("127.0.0.1")
    files = {"tls.crt": made.certificate, "tls.key": made.key, "ca.crt": made.ca_certificate}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    cluster = FakeCluster(run="none")
    cluster.load([*KRUISE, spread_json(*THREE)])
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(cluster)
        url, ports = await stack.enter_async_context(balanced())
        for _ in range(2):
            ports.append(await stack.enter_async_context(answering(cluster, url, tmp_path)))
        await registered(cluster.client)
        connector = aiohttp.TCPConnector(limit=0)
        session = await stack.enter_async_context(
            aiohttp.ClientSession(cluster.url, connector=connector)
        )
        refused = await asyncio.gather(*(create_pod(session, f"web-{n}") for n in range(POD_COUNT)))
        async with session.get(PODS) as answer:
            pods: list[Document] = (await answer.json())["items"]
        async with session.get(f"{SPREADS}/web") as answer:
            status = (await answer.json())["status"]["versionedSubsetStatuses"]
    found = Counter((injection(pod) or {}).get("subset") for pod in pods)
    assert found == {"a": 60, "b": 60, "c": 80}, f"{sum(refused)} were refused and retried"
    missing = {each["name"]: each["missingReplicas"] for each in status["versionIgnored"]}
    assert missing == {"a": 0, "b": 0, "c": -1}


async def create_pod(session: aiohttp.ClientSession, name: str) -> int:
    """Create a pod, retrying until it is admitted; return the number of refusals."""
    refused = 0
    while True:
        async with session.post(PODS, json=pod_of(name)) as answer:
            if answer.status == 201:
                return refused
            message = (await answer.json())["message"]
            assert answer.status == 500, message
            assert any(reason in message for reason in REASONS), message
            refused += 1
