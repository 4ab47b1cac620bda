"""Clusters that are forked, compared and exported, and that are deterministic."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import aiohttp
import orjson
import pytest

from extender.kube.rest.client import Propagation
from extender.kube.rest.resources import NAMESPACES, NODES, PODS
from fakeapi import FakeCluster, VirtualCluster
from fakeapi.apiserver.testing.object_history import compare
from fakeapi.testing.virtual_cluster import SocketlessCluster
from tests.builders import blocking, manifest, owner, running_pod, thing
from tests.fakeapi.controlplane.kubelet.stages import SCRIPT
from tests.properties.sampling import seeds
from tests.stage import CONFIG_MAPS, Stage, without_version

ROOT = Path(__file__).parents[3]
CHAIN = [thing("a"), thing("b", blocking("a")), thing("c", blocking("b"))]


async def test_a_cluster_and_its_fork_are_compared() -> None:
    async with VirtualCluster() as cluster:
        cluster.load(CHAIN)
        await cluster.clock.advance(1)
        async with cluster.fork() as fork:
            for world, how in ((cluster, Propagation.BACKGROUND), (fork, Propagation.ORPHAN)):
                await world.client.delete(CONFIG_MAPS.object("a", "default"), propagation=how)
                await world.clock.advance(10)
            found = compare(cluster.history("cm"), fork.history("cm"))
    assert (found.same, found.only_one, list(found.only_other)) == (
        3,
        [],
        ["default/b", "default/c"],
    )
    assert str(found).splitlines()[1:] == ["only there: default/b, default/c"]


async def test_equal_histories_are_equal() -> None:
    async with VirtualCluster() as cluster, cluster.fork() as fork:
        for world in (cluster, fork):
            world.load(CHAIN)
            await world.clock.advance(10)
        found = compare(cluster.history("cm"), fork.history("cm"))
    assert (found.equal, str(found)) == (True, "equal: 3 changes")


async def test_differences_of_final_states_are_named() -> None:
    async with VirtualCluster(run="none") as cluster, cluster.fork() as fork:
        cluster.load([{**thing("a"), "data": {"k": "1"}}])
        fork.load([thing("x"), {**thing("a"), "data": {"k": "2"}}])
        found = compare(cluster.history("cm"), fork.history("cm"))
    assert (found.same, found.only_other, found.different) == (0, ["default/x"], ["default/a"])


async def test_an_export_can_be_loaded() -> None:
    async with VirtualCluster(run="none") as one, VirtualCluster(run="none", seed=1) as other:
        one.load([*CHAIN, running_pod("p", "n"), thing("q", kind="ResourceQuota")])
        manifests = one.export()
        assert manifests[0]["kind"] == "Namespace"
        other.load(manifests)
        assert list(map(without_version, other.export())) == list(map(without_version, manifests))


async def test_a_cluster_is_exported_over_http() -> None:
    async with FakeCluster(run="none") as cluster, aiohttp.ClientSession(cluster.url) as http:
        cluster.load(CHAIN)
        async with http.get("/_fakeapi/export") as answer:
            document = await answer.json()
    assert document["kind"] == "List"
    assert document["items"] == cluster.export()


SCRIPT_OF_NODES = {"register": [{"name": "n{}", "count": 4}]}


async def silence(stage: Stage, node: str, *, silent: bool) -> None:
    """Stop or resume a node's heartbeats."""
    script = "{stages: [{silent: true}]}" if silent else "{}"
    await stage.patch(NODES, node, {"metadata": {"annotations": {SCRIPT: script}}})


async def run_randomly(seed: int) -> bytes:
    """Run some minutes of random changes, and return the history."""
    rng = Random(seed)
    async with VirtualCluster(run="all", seed=seed, kubelet=SCRIPT_OF_NODES) as cluster:
        stage = Stage(cluster)
        await stage.create(NAMESPACES, {"metadata": {"generateName": "space-"}})
        for _ in range(12):
            await act(stage, rng)
            await stage.passes(rng.choice([0, 1, 10, 60]))
        return history(cluster)


async def act(stage: Stage, rng: Random) -> None:
    number, node = rng.randrange(4), rng.choice(["n1", "n2", "n3"])
    match rng.randrange(6):
        case 0:
            stage.load(thing(f"m{number}", owner(f"m{rng.randrange(4)}")))
        case 1:
            pod = running_pod("unused", node)
            pod["metadata"] = {"generateName": "web-", "namespace": "default"}
            await stage.create(PODS, pod)
        case 2 | 3 as silent if await stage.find(NODES, node):
            await silence(stage, node, silent=silent == 2)
        case 4:
            how = rng.choice(list(Propagation))
            if await stage.find(CONFIG_MAPS, f"m{number}"):
                await stage.delete(CONFIG_MAPS, f"m{number}", how)
        case _:
            names = await stage.names(NAMESPACES)
            if names:
                await stage.delete(NAMESPACES, rng.choice(names))


def history(cluster: SocketlessCluster) -> bytes:
    events = cluster.world.api.store.history()
    return b"\n".join(b"%s %s" % (e.type.encode(), e.entry.raw) for e in events)


@pytest.mark.parametrize("seed", seeds(1, 6))
async def test_one_seed_gives_one_history_to_the_byte(seed: int) -> None:
    assert await run_randomly(seed) == await run_randomly(seed)


@pytest.mark.slow
def test_the_history_does_not_depend_on_the_order_of_sets() -> None:
    digests = {digest_of_process(hash_seed) for hash_seed in ("1", "2")}
    assert len(digests) == 1


def digest_of_process(hash_seed: str) -> bytes:
    """Return the digest of a history from a process of its own."""
    program = (
        "import asyncio, hashlib; from tests.fakeapi.simulation.test_world import run_randomly; "
        "print(hashlib.sha256(asyncio.run(run_randomly(3))).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, cwd=ROOT
    ).stdout


async def test_another_seed_gives_another_history() -> None:
    assert await run_randomly(1) != await run_randomly(2)


@pytest.mark.slow
async def test_ten_minutes_of_a_hundred_nodes() -> None:
    async with VirtualCluster(run="all") as cluster:
        stage = Stage(cluster)
        names = [f"node-{index:03}" for index in range(100)]
        stage.load(*(thing(name, kind="Node", namespace="") for name in names))
        stage.load(*(running_pod(f"pod-{name}", name) for name in names))
        await stage.passes(60)
        await silence(stage, "node-042", silent=True)
        await stage.passes(540)
        assert await stage.names(NODES) == names
        gone = {f"pod-{name}" for name in names} - {
            pod["metadata"]["name"]
            for pod in list(cluster.history("pods").states())[-1]
            if "deletionTimestamp" not in pod["metadata"]
        }
    assert gone == {"pod-node-042"}


OUT_OF_RANGE = ("advance=1e300", "advance=inf", "advance=9e9", "factor=1e300", "factor=1000001")


async def test_the_clock_is_moved_over_http() -> None:
    async with FakeCluster() as cluster, aiohttp.ClientSession(cluster.url) as http:

        async def clock(query: str, status: int = 200) -> dict[str, float]:
            async with http.post(f"/_fakeapi/clock?{query}") as answer:
                assert answer.status == status
                return orjson.loads(await answer.read())  # type: ignore[no-any-return]

        assert (await clock(""))["factor"] == 1
        before = (await clock("factor=0"))["seconds"]
        assert (await clock("advance=600"))["seconds"] == before + 600
        assert (await clock("jump=true"))["seconds"] > before + 600
        for wrong in ("advance=-1", "factor=x", "jump=maybe", "advance=nan", *OUT_OF_RANGE):
            refusal = await clock(wrong, 400)
            assert "clock: " in str(refusal["message"])


async def test_a_cluster_over_http_collects_garbage_and_deletes_namespaces() -> None:
    async with FakeCluster() as cluster:
        cluster.load([*CHAIN, manifest("Namespace", "space")])
        await cluster.client.delete(
            CONFIG_MAPS.object("a", "default"), propagation=Propagation.FOREGROUND
        )
        await cluster.client.delete(NAMESPACES.object("space"))
        await cluster.clock.advance(10)
        assert list(list(cluster.history("cm").states())[-1]) == []
        spaces = list(cluster.history("namespaces").states())[-1]
        assert "space" not in [each["metadata"]["name"] for each in spaces]
