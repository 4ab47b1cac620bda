"""``reprieve controllers`` as a process, in front of a server behind a socket."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from extender.config.strict_decoding import ConfigError
from extender.controllers.process.webhook_server import read_webhook_address
from extender.kube.rest.resources import LEASES, PODS, REPLICA_SETS
from fakeapi import FakeCluster
from fakeapi.apiserver.kinds.schemas import shipped_definitions
from policies.replicaset import DELETION_COST
from tests.builders.replicas import a_pod, a_replica_set
from tests.builders.workloadspread import clone_set_json, pod_of, spread_json, target_json
from tests.commands import reprieve, start
from tests.extender.controllers.webhooks.stages import KRUISE, injection, registered
from tests.extender.controllers.workloadspread.zones import zone_node
from tests.stage import ApiAccess, decode

TIMEOUT_SECONDS = 60
TWO = ({"name": "a", "maxReplicas": 2}, {"name": "b"})


@asynccontextmanager
async def controlling(*arguments: str) -> AsyncIterator[Process]:
    """Run the controllers; they must exit with 0 after SIGTERM."""
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
    async with asyncio.timeout(TIMEOUT_SECONDS):
        return (await process.stdout.readline()).decode().rstrip()


async def count_reaches(cluster: FakeCluster, replicas: int) -> None:
    """Return when the status reports so many replicas; check that there are as many pods."""
    path = REPLICA_SETS.object("web", "default")
    listed = await cluster.client.list(REPLICA_SETS, decode)
    async with (
        asyncio.timeout(TIMEOUT_SECONDS),
        cluster.client.watch(
            REPLICA_SETS, resource_version=listed.resource_version, timeout_seconds=TIMEOUT_SECONDS
        ) as events,
    ):
        status = (await cluster.client.get(path, decode)).get("status", {})
        while status.get("replicas") != replicas:
            status = decode((await anext(aiter(events))).object).get("status", {})
    assert len((await cluster.client.list(PODS, decode)).items) == replicas


async def metrics(listening: str) -> str:
    """Return the metrics of a process by its line ``listening on URL``."""
    assert listening.startswith("listening on http://127.0.0.1:")
    url = f"{listening.split()[-1]}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return await response.text()


async def test_replicas_are_controlled_over_http_and_metrics_served(cluster: FakeCluster) -> None:
    cluster.load([a_replica_set(replicas=20), a_pod("spare", labels={"app": "web"})])
    options = ("--kubeconfig", str(cluster.kubeconfig_path), "--metrics-port", "0")
    async with controlling(*options) as process:
        listening = await line(process)
        assert await line(process) == f"running replicaset, workloadspread on {cluster.url}"
        await count_reaches(cluster, 20)
        await scale(cluster, 3)
        text = await metrics(listening)
    assert "replicaset_controller_sorting_deletion_age_ratio_count" in text
    assert "replicaset_controller_stale_sync_skips_total" in text


async def scale(cluster: FakeCluster, replicas: int) -> None:
    await ApiAccess(cluster.client).set_replicas(replicas)
    await count_reaches(cluster, replicas)


@pytest.mark.slow
async def test_a_workload_spread_is_reconciled_over_http() -> None:
    document = spread_json(*TWO, targetRef=target_json("ReplicaSet"))
    async with FakeCluster(run="none") as cluster:
        cluster.load([*shipped_definitions(["workloadspread"]), document])
        pods = [a_pod(f"web-{number}", "web", node="n") for number in range(3)]
        cluster.load([a_replica_set(replicas=3), *pods, zone_node("a")])
        options = ("--kubeconfig", str(cluster.kubeconfig_path), "--quirks", "upstream")
        async with controlling(*options, "--run", "workloadspread") as process:
            assert await line(process) == f"running workloadspread on {cluster.url}"
            await cost_reaches(cluster, "web-0", "-300")


async def cost_reaches(cluster: FakeCluster, name: str, cost: str) -> None:
    """Return when a pod has a deletion cost."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            pod = await ApiAccess(cluster.client).pod(name)
            if pod["metadata"].get("annotations", {}).get(DELETION_COST) == cost:
                return


async def holder(cluster: FakeCluster) -> str:
    """Return the holder of the Lease, once it has one."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            for each in await ApiAccess(cluster.client).all(LEASES):
                if found := each["spec"].get("holderIdentity"):
                    return str(found)


@pytest.mark.slow
async def test_another_process_takes_over_when_the_leader_ends(cluster: FakeCluster) -> None:
    cluster.load([a_replica_set(replicas=2)])
    options = ("--server", cluster.url, "--leader-elect", "--lease", "default/test")
    async with controlling(*options) as first:
        await line(first)
        before = await holder(cluster)
        await count_reaches(cluster, 2)
        async with controlling(*options) as second:
            await line(second)
            first.send_signal(signal.SIGTERM)
            assert await first.wait() == 0
            await scale(cluster, 5)
            assert await holder(cluster) != before


@pytest.mark.slow
async def test_a_lost_lease_ends_the_process_with_one_line(cluster: FakeCluster) -> None:
    process = await start("controllers", "--server", cluster.url, "--leader-elect")
    await line(process)
    await holder(cluster)
    taken_over = {"spec": {"holderIdentity": "another"}}
    lease = (LEASES, "reprieve-controllers", taken_over, "kube-system")
    await ApiAccess(cluster.client).patch(*lease)
    async with asyncio.timeout(TIMEOUT_SECONDS):
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert "no longer holds kube-system/reprieve-controllers" in errors.decode()


@pytest.mark.slow
async def test_a_server_that_is_not_there_is_waited_for() -> None:
    async with controlling("--server", "http://127.0.0.1:1") as process:
        assert await line(process) == "running replicaset, workloadspread on http://127.0.0.1:1"


SERVER = ("--server", "http://127.0.0.1:1")
HOOKS = ("--run", "workloadspread", "--webhook-port", "0")
MISTAKES = [
    (("--run", "unknown"), "--run: no controller 'unknown'; expected one of: replicaset, work"),
    (("--run", "replicaset", "--webhook-port", "0"), "--webhook-port: no webhooks in --run rep"),
    ((*HOOKS, *SERVER, "--webhook-certs", "/nowhere"), "--webhook-certs: /nowhere/tls.crt: No "),
    (("--run", "replicaset,gc"), "--run: no controller 'gc'"),
    (("--server", "nowhere"), "--server"),
    (("--server", "http://x", "--kubeconfig", "f"), "--kubeconfig and --server exclude each other"),
    (("--leader-elect", "--lease", "test"), "--lease: 'test'; expected NAMESPACE/NAME"),
    (("--kubeconfig", "/nowhere/config"), "/nowhere/config"),
    (("--quirks", "odd"), "--quirks: no mode 'odd'; expected one of: upstream, fixed"),
    (("--unknown",), "--unknown"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "message"), MISTAKES, ids=[" ".join(m[0]) for m in MISTAKES])
async def test_a_mistake_is_reported_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    done = await reprieve("controllers", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.mark.slow
async def test_webhooks_are_answered_over_https_and_counted(cluster: FakeCluster) -> None:
    cluster.load([*KRUISE, spread_json(*TWO)])
    options = ("--server", cluster.url, *HOOKS, "--metrics-port", "0")
    async with controlling(*options) as process:
        listening = await line(process)
        hooks = await line(process)
        assert hooks.startswith("webhooks on https://127.0.0.1:")
        assert await line(process) == f"running workloadspread on {cluster.url}"
        await registered(cluster.client)
        made = [await created(cluster, f"web-{number}") for number in range(3)]
        assert [(injection(each) or {}).get("subset") for each in made] == ["a", "a", "b"]
        assert "workloadspread_webhook_pods_injected_total 3.0" in await metrics(listening)


@pytest.mark.slow
async def test_controller_and_webhooks_share_their_caches(cluster: FakeCluster) -> None:
    cluster.load([*KRUISE, clone_set_json(), spread_json({"name": "a", "maxReplicas": "100%"})])
    async with controlling("--server", cluster.url, *HOOKS) as process:
        await line(process)
        await registered(cluster.client)
        await created(cluster, "web-1")
        await cost_reaches(cluster, "web-1", "100")
        watched = Counter(
            request.path.rpartition("/")[2]
            for request in cluster.requests
            if "watch" in request.query
        )
    shared = ("workloadspreads", "configmaps", "clonesets")
    assert {kind: watched[kind] for kind in shared} == dict.fromkeys(shared, 1)


async def created(cluster: FakeCluster, name: str) -> dict[str, Any]:
    return await ApiAccess(cluster.client).create(PODS, pod_of(name))


@pytest.mark.slow
async def test_webhooks_answer_whichever_replica_leads(cluster: FakeCluster) -> None:
    cluster.load([*KRUISE, spread_json({"name": "a"})])
    elected = ("--leader-elect", "--lease", "default/test")
    async with controlling("--server", cluster.url, *elected) as leader:
        await line(leader)
        await holder(cluster)
        async with controlling("--server", cluster.url, *HOOKS, *elected) as other:
            await line(other)
            await registered(cluster.client)
            assert injection(await created(cluster, "web-1")) == {"name": "web", "subset": "a"}


@pytest.mark.slow
async def test_an_occupied_port_is_reported_in_one_line(cluster: FakeCluster) -> None:
    port = cluster.url.rpartition(":")[2]
    done = await reprieve("controllers", "--server", cluster.url, "--metrics-port", port)
    assert (done.code, done.out) == (2, "")
    assert f"--metrics-port: {port}: " in done.err
    done = await reprieve("controllers", *HOOKS[:2], *SERVER, "--webhook-port", port)
    assert (done.code, done.out) == (2, "")
    assert f"--webhook-port: {port}: " in done.err


@pytest.mark.parametrize(
    ("port", "url", "directory", "message"),
    [
        (None, "https://x", None, "--webhook-url and --webhook-certs need --webhook-port"),
        (None, "", Path("/certs"), "--webhook-url and --webhook-certs need --webhook-port"),
        (0, "http://x", None, r"--webhook-url: 'http://x'; expected https://HOST\[:PORT\]"),
    ],
)
def test_inconsistent_options_of_webhooks_are_reported(
    port: int | None, url: str, directory: Path | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read_webhook_address("127.0.0.1", port, url, directory)


@pytest.mark.slow
async def test_help_has_an_example() -> None:
    done = await reprieve("controllers", "--help")
    assert done.code == 0
    assert "Example: reprieve controllers" in done.out


@pytest.mark.slow
async def test_fakeapi_runs_the_controllers_as_components(tmp_path: Path) -> None:
    file = tmp_path / "web.json"
    file.write_bytes(orjson.dumps(a_replica_set(replicas=5)))
    run = ("--run", "gc,namespaces,replicaset", "--load", str(file), "--port", "0")
    process = await start("fakeapi", *run)
    url = (await line(process)).split()[-1]
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS), aiohttp.ClientSession() as session:
            pods: list[object] = []
            while len(pods) < 5:
                async with session.get(f"{url}/api/v1/pods") as response:
                    pods = (await response.json())["items"]
    finally:
        process.send_signal(signal.SIGTERM)
        await process.communicate()
    assert process.returncode == 0
