"""Another client writes in between: the decision is made again, four times in all."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections import Counter
from random import Random

import orjson
import pytest

from extender.controllers.workloadspread.spread_cache import WORKLOAD_SPREADS
from extender.kube.rest.client import PatchType
from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD
from fakeapi import VirtualCluster
from fakeapi.testing.faults import fault
from tests.builders.workloadspread import Document, pod_of, spread_json
from tests.extender.controllers.webhooks.stages import KRUISE, Process, counts, processes
from tests.sampling import seeds
from tests.stage import Stage, decode

THREE = (
    {"name": "a", "maxReplicas": 60},
    {"name": "b", "maxReplicas": 60},
    {"name": "c"},
)


SLOW = (
    fault("latency", least=1, most=1)
    .on("update", "workloadspreads", subresources="status")
    .by("hooks-*")
)
"""Each write arrives a second later."""


async def touch(cluster: VirtualCluster, number: int) -> None:
    """Write the status as another client does."""
    path = WORKLOAD_SPREADS.object("web", "default").subresource("status")
    change = orjson.dumps({"status": {"observedGeneration": number + 1}})
    await cluster.client.patch(path, PatchType.MERGE, change, decode)


async def meddled_with(times: int) -> tuple[Document, dict[str, dict[str, int]], float]:
    """Let a pod come while another client writes in between so often.

    Return the answer, what is missing of each subset, and how many conflicts there were.
    """
    cluster = VirtualCluster(run="none")
    cluster.load([*KRUISE, spread_json(*THREE)])
    async with cluster, processes(cluster) as [process]:
        cluster.faults.plan(SLOW)
        asking = asyncio.create_task(process.admit(pod_of("web-1")))
        for number in range(times):
            await cluster.clock.advance(0.5)
            await touch(cluster, number)
            await cluster.clock.advance(0.5)
        await cluster.clock.advance(5)
        return await asking, await counts(Stage(cluster)), seen_conflicts(process)


def seen_conflicts(process: Process) -> float:
    [metric] = process.part.metrics.conflicts.collect()
    return metric.samples[0].value


@pytest.mark.parametrize("times", [0, 1, 2, 3])
async def test_three_conflicts_are_survived(times: int) -> None:
    response, missing, conflicts = await meddled_with(times)
    assert (response["allowed"], subset_of(response), conflicts) == (True, "a", times)
    assert missing == {"versionIgnored": {"a": 59, "b": 60, "c": -1}}


async def test_the_fourth_refuses_the_pod_and_says_why() -> None:
    response, missing, conflicts = await meddled_with(4)
    assert (response["allowed"], response["status"]["code"], conflicts) == (False, 500, 4)
    assert "the object has been modified" in response["status"]["message"]
    assert missing == {}


async def test_an_old_copy_is_corrected_by_the_server() -> None:
    """The first subset is filled behind the back of one process, which still sees it empty."""
    cluster = VirtualCluster(run="none")
    cluster.load([*KRUISE, spread_json({"name": "a", "maxReplicas": 1}, {"name": "b"})])
    async with cluster, processes(cluster, 2) as [one, other]:
        first = await one.admit(pod_of("web-1"))
        second = asyncio.create_task(other.admit(pod_of("web-2")))
        await cluster.clock.advance(1)
        assert [subset_of(first), subset_of(await second)] == ["a", "b"]


async def test_own_writes_are_known_before_the_caches_show_them() -> None:
    cluster = VirtualCluster(run="none")
    cluster.load([*KRUISE, spread_json(*THREE)])
    async with cluster, processes(cluster) as [process]:
        cluster.faults.plan(fault("silence").on("watch", "workloadspreads"))
        several = [await process.admit(pod_of(f"web-{number}")) for number in range(5)]
        assert {subset_of(each) for each in several} == {"a"}
        assert await counts(Stage(cluster)) == {"versionIgnored": {"a": 55, "b": 60, "c": -1}}


async def test_one_that_goes_meanwhile_lets_pods_pass() -> None:
    cluster = VirtualCluster(run="none")
    cluster.load([*KRUISE, spread_json(*THREE)])
    async with cluster, processes(cluster) as [process]:
        cluster.faults.plan(SLOW)
        asking = asyncio.create_task(process.admit(pod_of("web-1")))
        await cluster.clock.advance(0.5)
        await touch(cluster, 0)
        await cluster.clock.advance(0.505)  # the conflict is known, and the next look to come
        await cluster.client.delete(WORKLOAD_SPREADS.object("web", "default"))
        await cluster.clock.advance(5)
        assert await asking == {"uid": "asked", "allowed": True}


def subset_of(response: Document) -> str | None:
    """Return the subset that a pod was put into."""
    for each in orjson.loads(b64decode(response.get("patch", "")) or b"[]"):
        if "matched-workloadspread" in each["path"]:
            return str(orjson.loads(each["value"])["subset"])
        if each["path"] == "/metadata/annotations":
            return str(orjson.loads(each["value"][MATCHED_WORKLOADSPREAD])["subset"])
    return None


@pytest.mark.parametrize("seed", seeds(1, 5))
async def test_two_processes_never_overfill_a_subset_and_leave_none_short(seed: int) -> None:
    """200 pods come at once, to either process; those refused come again."""
    cluster = VirtualCluster(run="none", seed=seed)
    cluster.load([*KRUISE, spread_json(*THREE)])
    rng = Random(seed)
    async with cluster, processes(cluster, 2, seed) as running:
        cluster.faults.plan(fault("latency", least=0.001, most=0.1).by("hooks-*"), seed=seed)
        found: Counter[str | None] = Counter()

        async def come(name: str) -> None:
            while True:
                await cluster.clock.sleep(rng.random())
                response = await rng.choice(running).admit(pod_of(name))
                if response["allowed"]:
                    found[subset_of(response)] += 1
                    return

        coming = [asyncio.create_task(come(f"web-{number}")) for number in range(200)]
        while not all(each.done() for each in coming):
            await cluster.clock.advance(1)
            assert max(found["a"], found["b"]) <= 60
        assert found == {"a": 60, "b": 60, "c": 80}
        assert sum(map(seen_conflicts, running)) > 0
        assert await counts(Stage(cluster)) == {"versionIgnored": {"a": 0, "b": 0, "c": -1}}


@pytest.mark.parametrize("seed", seeds(1, 3))
async def test_two_concurrent_processes_take_turns(seed: int) -> None:
    """Both have as much to write as they can; neither comes too late again and again."""
    cluster = VirtualCluster(run="none", seed=seed)
    cluster.load([*KRUISE, spread_json(*THREE)])
    async with cluster, processes(cluster, 2, seed) as running:
        cluster.faults.plan(fault("latency", least=0.002, most=0.006).by("hooks-*"), seed=seed)

        async def come(number: int) -> bool:
            return (await running[number % 2].admit(pod_of(f"web-{number}")))["allowed"] is True

        coming = [asyncio.create_task(come(number)) for number in range(200)]
        while not all(each.done() for each in coming):
            await cluster.clock.advance(1)
        assert [await each for each in coming] == 200 * [True]
        assert await counts(Stage(cluster)) == {"versionIgnored": {"a": 0, "b": 0, "c": -1}}
