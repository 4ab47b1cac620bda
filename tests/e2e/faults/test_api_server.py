"""The API server as another process: killed, started anew with another world, stuck, behind TLS."""

from __future__ import annotations

import asyncio
import base64
import json
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
    Crowd,
    Line,
    begun,
    extender,
    figure,
    objects,
    ready,
    right,
    shown,
)
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


async def test_killed_and_started_anew_with_another_world(tmp_path: Path) -> None:
    """It comes back at versions that it had before, as a server does that was restored."""
    server, url = await api_server(tmp_path, objects(), 0)
    try:
        async with extender(tmp_path, url) as running:
            for run in API_KILLED.seeds:
                is_full = run % 2 == 0
                async with Crowd(
                    running.url, RIGHT if is_full else right(FEWER)
                ).calling() as crowd:
                    await crowd.until(20)
                    server.kill()
                    await server.wait()
                    await crowd.until(200)
                    assert crowd.told["broken"] + crowd.told["refused"] == 0
                world = FEWER if is_full else objects()
                server, _ = await api_server(tmp_path, world, int(url.rpartition(":")[2]))
                pods = f'reprieve_objects{{kind="pods"}} {len(world) - len(NODES)}.0'
                await shown(running.url, "/metrics", pods)
                await ready(running.url)
    finally:
        if server.returncode is None:
            server.kill()
        await server.wait()


async def test_a_line_that_goes_dead_is_noticed(tmp_path: Path) -> None:
    """The server's minutes are seconds here, so that bookmarks come each second."""
    clock = VirtualClock.from_host()
    clock.run(60)
    async with FakeCluster(run="none", clock=clock) as cluster:
        cluster.load(objects())
        target = cluster.server.url.removeprefix("http://")
        async with (
            Line(target).held() as line,
            extender(
                tmp_path, f"http://127.0.0.1:{line.port}", watchSilenceSeconds=3, staleSeconds=6
            ) as running,
        ):
            for _ in LINE_DEAD.seeds:
                async with Crowd(running.url).calling(2) as crowd:
                    await crowd.until(20)
                    line.fall_silent()
                    await shown(running.url, "/readyz", "no recent data for ")
                    await crowd.until(5, "refused")
                    line.revive()
                    await ready(running.url)
                    before = crowd.told["refused"]
                    await crowd.until(50)
                    assert crowd.told["refused"] - before <= 2, "those that were under way"
                    assert crowd.told["broken"] == 0


def kubeconfig(folder: Path, port: int, *trusted: Pair) -> str:
    """Write how to reach a server that shows one of these."""
    authorities = b"".join(each.certificate for each in trusted)
    cluster = {
        "server": f"https://127.0.0.1:{port}",
        "certificate-authority-data": base64.b64encode(authorities).decode(),
    }
    path = folder / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "here", "cluster": cluster}],
                "users": [{"name": "me", "user": {}}],
                "contexts": [{"name": "it", "context": {"cluster": "here", "user": "me"}}],
                "current-context": "it",
            }
        )
    )
    return str(path)


def shows(context: ssl.SSLContext, pair: Pair, folder: Path) -> None:
    """Have a server show a certificate from now on."""
    path = folder / "server.pem"
    path.write_bytes(pair.certificate + pair.key)
    context.load_cert_chain(path)


async def test_its_certificate_expires(tmp_path: Path) -> None:
    clock = VirtualClock.from_host()
    clock.run(60)
    now = time.time()
    expired, good = self_signed(now - 900, now - 1), self_signed(now - 60, now + 9000, 1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shows(context, expired, tmp_path)
    async with FakeCluster(run="none", clock=clock) as cluster:
        cluster.load(objects())
        async with Line(cluster.server.url.removeprefix("http://"), context).held() as line:
            way = ("--kubeconfig", kubeconfig(tmp_path, line.port, expired, good))
            running = await begun(tmp_path, *way, watchSilenceSeconds=3, staleSeconds=6)
            await shown(running.url, "/readyz", "not ready: waiting for ")
            for _ in API_CERTIFICATE.seeds:
                shows(context, good, tmp_path)
                await ready(running.url)
                async with Crowd(running.url).calling(2) as crowd:
                    await crowd.until(20)
                    shows(context, expired, tmp_path)
                    await crowd.until(20)
                    assert crowd.told["refused"] == 0, "what is open stays open"
                    line.reset()
                    await shown(running.url, "/readyz", "no recent data for ")
                    await crowd.until(5, "refused")
            assert await figure(running.url, "reprieve_requests_total") > 0
            log = await running.end()
            assert "certificate has expired" in log
            assert "Traceback" not in log
