"""``reprieve controllers`` as a process, in front of a server behind a socket."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
import pytest

from extender.kube.client import PatchType
from extender.kube.resources import LEASES, PODS, REPLICA_SETS
from fakeapi import FakeCluster
from tests.commands import reprieve, start
from tests.fakeapi.controllers.replicaset.table import a_pod, a_replica_set
from tests.fakeapi.controlplane.stage import decode

PATIENCE_SECONDS = 60


@asynccontextmanager
async def controlling(*arguments: str) -> AsyncIterator[Process]:
    """Run the controllers; they must end well when they are told to."""
    process = await start("controllers", *arguments)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        _, errors = await process.communicate()
    assert process.returncode == 0, errors


async def line(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        return (await process.stdout.readline()).decode().rstrip()


async def count_reaches(cluster: FakeCluster, replicas: int) -> None:
    """Return when the status says so, and as many pods are there."""
    path = REPLICA_SETS.object("web", "default")
    listed = await cluster.client.list(REPLICA_SETS, decode)
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        cluster.client.watch(
            REPLICA_SETS,
            resource_version=listed.resource_version,
            timeout_seconds=PATIENCE_SECONDS,
        ) as events,
    ):
        status = (await cluster.client.get(path, decode)).get("status", {})
        while status.get("replicas") != replicas:
            status = decode((await anext(aiter(events))).object).get("status", {})
    assert len((await cluster.client.list(PODS, decode)).items) == replicas


async def test_pods_are_kept_over_http_and_figures_served(cluster: FakeCluster) -> None:
    cluster.load([a_replica_set(replicas=20), a_pod("spare", labels={"app": "web"})])
    asked = ("--kubeconfig", str(cluster.kubeconfig_path), "--metrics-port", "0")
    async with controlling(*asked) as process:
        listening = await line(process)
        assert listening.startswith("listening on http://127.0.0.1:")
        assert await line(process) == f"running replicaset on {cluster.url}"
        await count_reaches(cluster, 20)
        await replicas_become(cluster, 3)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{listening.split()[-1]}/metrics") as response,
        ):
            figures = await response.text()
    assert "replicaset_controller_sorting_deletion_age_ratio_count" in figures
    assert "replicaset_controller_stale_sync_skips_total" in figures


async def replicas_become(cluster: FakeCluster, replicas: int) -> None:
    change = orjson.dumps({"spec": {"replicas": replicas}})
    path = REPLICA_SETS.object("web", "default")
    await cluster.client.patch(path, PatchType.MERGE, change, decode)
    await count_reaches(cluster, replicas)


async def holder(cluster: FakeCluster) -> str:
    """Give who holds the Lease, once somebody does."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            for each in (await cluster.client.list(LEASES, decode)).items:
                if found := each["spec"].get("holderIdentity"):
                    return str(found)


async def test_of_two_one_works_and_the_other_takes_over_when_it_ends(
    cluster: FakeCluster,
) -> None:
    cluster.load([a_replica_set(replicas=2)])
    asked = ("--server", cluster.url, "--leader-elect", "--lease", "default/test")
    async with controlling(*asked) as first:
        await line(first)
        before = await holder(cluster)
        await count_reaches(cluster, 2)
        async with controlling(*asked) as second:
            await line(second)
            first.send_signal(signal.SIGTERM)
            assert await first.wait() == 0
            await replicas_become(cluster, 5)
            assert await holder(cluster) != before


async def test_who_loses_the_lease_ends_with_one_line(cluster: FakeCluster) -> None:
    process = await start("controllers", "--server", cluster.url, "--leader-elect")
    await line(process)
    await holder(cluster)
    lease = LEASES.object("reprieve-controllers", "kube-system")
    usurped = orjson.dumps({"spec": {"holderIdentity": "another"}})
    await cluster.client.patch(lease, PatchType.MERGE, usurped, decode)
    async with asyncio.timeout(PATIENCE_SECONDS):
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert "does not lead by kube-system/reprieve-controllers any more" in errors.decode()


async def test_a_server_that_is_not_there_is_waited_for() -> None:
    async with controlling("--server", "http://127.0.0.1:1") as process:
        assert await line(process) == "running replicaset on http://127.0.0.1:1"


MISTAKES = [
    (("--run", "workloadspread"), "--run: no controller 'workloadspread'; expected one of: rep"),
    (("--run", "replicaset,gc"), "--run: no controller 'gc'"),
    (("--server", "nowhere"), "--server"),
    (("--server", "http://x", "--kubeconfig", "f"), "--kubeconfig and --server exclude each other"),
    (("--leader-elect", "--lease", "test"), "--lease: 'test'; expected NAMESPACE/NAME"),
    (("--kubeconfig", "/nowhere/config"), "/nowhere/config"),
    (("--sorcery",), "--sorcery"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES, ids=[" ".join(m[0]) for m in MISTAKES])
async def test_a_mistake_is_told_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    done = await reprieve("controllers", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert done.err.count("\n") == 1


async def test_a_port_that_is_taken_is_told_in_one_line(cluster: FakeCluster) -> None:
    port = cluster.url.rpartition(":")[2]
    done = await reprieve("controllers", "--server", cluster.url, "--metrics-port", port)
    assert (done.code, done.out) == (2, "")
    assert f"--metrics-port: {port}: " in done.err


async def test_help_has_an_example() -> None:
    done = await reprieve("controllers", "--help")
    assert done.code == 0
    assert "Example: reprieve controllers" in done.out


async def test_fakeapi_runs_it_as_a_part(tmp_path: Path) -> None:
    file = tmp_path / "web.json"
    file.write_bytes(orjson.dumps(a_replica_set(replicas=5)))
    run = ("--run", "gc,namespaces,replicaset", "--load", str(file), "--port", "0")
    process = await start("fakeapi", *run)
    url = (await line(process)).split()[-1]
    try:
        async with asyncio.timeout(PATIENCE_SECONDS), aiohttp.ClientSession() as session:
            pods: list[object] = []
            while len(pods) < 5:
                async with session.get(f"{url}/api/v1/pods") as response:
                    pods = (await response.json())["items"]
    finally:
        process.send_signal(signal.SIGTERM)
        await process.communicate()
    assert process.returncode == 0
