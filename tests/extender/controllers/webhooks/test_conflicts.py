"""If another client writes first, the decision is made again, four times in all."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections import Counter
from random import Random

import orjson
import pytest

from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD
from fakeapi.testing.faults import fault
from tests.builders.workloadspread import Document, pod_of, spread_json
from tests.extender.controllers.webhooks.stages import process_stage
from tests.properties.sampling import seeds
from tests.stage import SPREADS, Stage

THREE = ({"name": "a", "maxReplicas": 60}, {"name": "b", "maxReplicas": 60}, {"name": "c"})


SLOW = (
    fault("latency", least=1, most=1)
    .on("update", "workloadspreads", subresources="status")
    .by("hooks-*")
)
"""Each write of a status arrives a second later."""


async def write_status(stage: Stage, number: int) -> None:
    """Write the status as another client does."""
    await stage.patch(SPREADS, "web", {"status": {"observedGeneration": number + 1}})


async def admit_during_writes(times: int) -> tuple[Document, dict[str, dict[str, int]], float]:
    """Create a pod while another client writes the status so many times.

    Return the response, what is missing of each subset, and the number of conflicts.
    """
    async with process_stage(spread_json(*THREE)) as stage:
        stage.plan_faults(SLOW)
        response = stage.admit("web-1")
        for number in range(times):
            await stage.passes(0.5)
            await write_status(stage, number)
            await stage.passes(0.5)
        await stage.passes(5)
        return await response, await stage.missing(), stage.processes[0].conflicts


@pytest.mark.parametrize("times", [0, 1, 2, 3])
async def test_three_conflicts_are_survived(times: int) -> None:
    response, missing, conflicts = await admit_during_writes(times)
    assert (response["allowed"], subset_of(response), conflicts) == (True, "a", times)
    assert missing == {"versionIgnored": {"a": 59, "b": 60, "c": -1}}


async def test_the_fourth_conflict_refuses_the_pod_with_a_reason() -> None:
    response, missing, conflicts = await admit_during_writes(4)
    assert (response["allowed"], response["status"]["code"], conflicts) == (False, 500, 4)
    assert "the object has been modified" in response["status"]["message"]
    assert missing == {}


async def test_a_stale_cache_is_corrected_by_the_server() -> None:
    """One process fills the first subset; in the cache of the other it is still empty."""
    spread = spread_json({"name": "a", "maxReplicas": 1}, {"name": "b"})
    async with process_stage(spread, count=2) as stage:
        first = await stage.admit("web-1", 0)
        second = stage.admit("web-2", 1)
        await stage.passes()
        assert [subset_of(first), subset_of(await second)] == ["a", "b"]


async def test_own_writes_are_known_before_the_caches_show_them() -> None:
    async with process_stage(spread_json(*THREE)) as stage:
        stage.plan_faults(fault("silence").on("watch", "workloadspreads"))
        several = [await stage.admit(f"web-{number}") for number in range(5)]
        assert {subset_of(each) for each in several} == {"a"}
        assert await stage.missing() == {"versionIgnored": {"a": 55, "b": 60, "c": -1}}


async def test_pods_pass_if_the_workload_spread_is_deleted_meanwhile() -> None:
    async with process_stage(spread_json(*THREE)) as stage:
        stage.plan_faults(SLOW)
        response = stage.admit("web-1")
        await stage.passes(0.5)
        await write_status(stage, 0)
        await stage.passes(0.505)  # the conflict is known, and the next attempt has not begun
        await stage.delete(SPREADS, "web")
        await stage.passes(5)
        assert await response == {"uid": "review", "allowed": True}


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
    """200 pods are created at once through either process; refused ones are created again."""
    rng = Random(seed)
    async with process_stage(spread_json(*THREE), count=2, seed=seed) as stage:
        latency = fault("latency", least=0.001, most=0.1).by("hooks-*")
        stage.cluster.faults.plan(latency, seed=seed)
        found: Counter[str | None] = Counter()

        async def create(name: str) -> None:
            while True:
                await stage.cluster.clock.sleep(rng.random())
                response = await rng.choice(stage.processes).admit(pod_of(name))
                if response["allowed"]:
                    found[subset_of(response)] += 1
                    return

        tasks = [asyncio.create_task(create(f"web-{number}")) for number in range(200)]
        while not all(each.done() for each in tasks):
            await stage.passes()
            assert max(found["a"], found["b"]) <= 60
        assert found == {"a": 60, "b": 60, "c": 80}
        assert sum(each.conflicts for each in stage.processes) > 0
        assert await stage.missing() == {"versionIgnored": {"a": 0, "b": 0, "c": -1}}


@pytest.mark.parametrize("seed", seeds(1, 3))
async def test_two_concurrent_processes_write_alternately(seed: int) -> None:
    """Both have as much to write as they can, and no pod is refused for too many conflicts."""
    async with process_stage(spread_json(*THREE), count=2, seed=seed) as stage:
        latency = fault("latency", least=0.002, most=0.006).by("hooks-*")
        stage.cluster.faults.plan(latency, seed=seed)
        responses = [stage.admit(f"web-{number}", number % 2) for number in range(200)]
        while not all(each.done() for each in responses):
            await stage.passes()
        assert [(await each)["allowed"] for each in responses] == 200 * [True]
        assert await stage.missing() == {"versionIgnored": {"a": 0, "b": 0, "c": -1}}
