"""The API server as a process: killed, restarted with other objects, stuck, and with TLS."""

from __future__ import annotations

import asyncio
import ssl
import time
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Any

from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.testing.fake_cluster import FakeCluster
from tests.builders import encoded
from tests.commands import COMMAND, ROOT
from tests.e2e.faults.extender_processes import (
    NODES,
    RIGHT,
    Callers,
    Proxy,
    extender,
    metric,
    objects,
    ready,
    right,
    start_extender,
    wait_for_page,
)
from tests.e2e.scenario_runner import write_kubeconfig
from tests.faults.short_lived_certificates import Pair, self_signed
from tests.faults.table import API_CERTIFICATE, API_KILLED, LINE_DEAD

FEWER = objects(NODES[:4])


async def api_server(
    folder: Path, documents: list[dict[str, Any]], port: int
) -> tuple[Process, str]:
    """Start an API server with these objects; port 0 is a free one."""
    path = folder / "cluster.jsonl"
    path.write_bytes(b"\n".join(map(encoded, documents)))
    options = ("--port", str(port), "--run", "none", "--load", str(path))
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "fakeapi", *options, cwd=ROOT, stdout=PIPE
    )
    assert process.stdout is not None
    return process, (await process.stdout.readline()).decode().split()[-1]


async def test_killed_and_restarted_with_other_objects(tmp_path: Path) -> None:
    """Its resource versions start again, as on a server that was restored from a backup."""
    server, url = await api_server(tmp_path, objects(), 0)
    try:
        async with extender(tmp_path, url) as running:
            for run in API_KILLED.seeds:
                is_full = run % 2 == 0
                async with Callers(
                    running.url, RIGHT if is_full else right(FEWER)
                ).calling() as callers:
                    await callers.until(20)
                    server.kill()
                    await server.wait()
                    await callers.until(200)
                    assert callers.counts["broken"] + callers.counts["refused"] == 0
                world = FEWER if is_full else objects()
                server, _ = await api_server(tmp_path, world, int(url.rpartition(":")[2]))
                pods = f'reprieve_objects{{kind="pods"}} {len(world) - len(NODES)}.0'
                await wait_for_page(running.url, "/metrics", pods)
                await ready(running.url)
    finally:
        if server.returncode is None:
            server.kill()
        await server.wait()


async def test_a_dead_connection_is_detected(tmp_path: Path) -> None:
    """The server's clock runs at 60 times the speed, so that it sends bookmarks each second."""
    clock = VirtualClock.from_host()
    clock.run(60)
    async with FakeCluster(run="none", clock=clock) as cluster:
        cluster.load(objects())
        target = cluster.server.url.removeprefix("http://")
        async with (
            Proxy(target).listening() as proxy,
            extender(
                tmp_path, f"http://127.0.0.1:{proxy.port}", watchSilenceSeconds=3, staleSeconds=6
            ) as running,
        ):
            for _ in LINE_DEAD.seeds:
                async with Callers(running.url).calling(2) as callers:
                    await callers.until(20)
                    proxy.stop_forwarding()
                    await wait_for_page(running.url, "/readyz", "no recent data for ")
                    await callers.until(5, "refused")
                    proxy.revive()
                    await ready(running.url)
                    before = callers.counts["refused"]
                    await callers.until(50)
                    assert callers.counts["refused"] - before <= 2, "calls that had begun before"
                    assert callers.counts["broken"] == 0


def serve_certificate(context: ssl.SSLContext, pair: Pair, folder: Path) -> None:
    """Serve a certificate from now on."""
    path = folder / "server.pem"
    path.write_bytes(pair.certificate + pair.key)
    context.load_cert_chain(path)


async def test_its_certificate_expires(tmp_path: Path) -> None:
    clock = VirtualClock.from_host()
    clock.run(60)
    now = time.time()
    expired, good = self_signed(now - 900, now - 1), self_signed(now - 60, now + 9000, 1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serve_certificate(context, expired, tmp_path)
    async with FakeCluster(run="none", clock=clock) as cluster:
        cluster.load(objects())
        async with Proxy(cluster.server.url.removeprefix("http://"), context).listening() as proxy:
            url, trusted = f"https://127.0.0.1:{proxy.port}", expired.certificate + good.certificate
            kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", url, authority=trusted)
            access = ("--kubeconfig", str(kubeconfig))
            running = await start_extender(tmp_path, *access, watchSilenceSeconds=3, staleSeconds=6)
            await wait_for_page(running.url, "/readyz", "not ready: waiting for ")
            for _ in API_CERTIFICATE.seeds:
                serve_certificate(context, good, tmp_path)
                await ready(running.url)
                async with Callers(running.url).calling(2) as callers:
                    await callers.until(20)
                    serve_certificate(context, expired, tmp_path)
                    await callers.until(20)
                    assert callers.counts["refused"] == 0, "open connections stay open"
                    proxy.reset()
                    await wait_for_page(running.url, "/readyz", "no recent data for ")
                    await callers.until(5, "refused")
            assert await metric(running.url, "reprieve_requests_total") > 0
            log = await running.end()
            assert "certificate has expired" in log
            assert "Traceback" not in log
