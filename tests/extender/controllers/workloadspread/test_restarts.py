"""Killed between any two of its writes, and started again, the controller gets to the same end."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.rest.resources import PODS
from fakeapi.simulation.background_tasks import in_process_endpoint
from tests.builders.replicas import a_pod, a_replica_set
from tests.extender.controllers.workloadspread.killable_controller import Process, When
from tests.extender.controllers.workloadspread.objects import Document
from tests.extender.controllers.workloadspread.zones import Zones, in_zone, zones

MATCHED = "apps.kruise.io/matched-workloadspread"
ADAPTIVE = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 5}}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def pods() -> list[Document]:
    """Return pods to adopt, to give a deletion cost, and to reschedule."""
    running = [a_pod(f"{zone}{number}", "web", node=f"node-{zone}") for zone, number in PLACES]
    annotation = {MATCHED: '{"name":"web","subset":"a"}'}
    stuck = [a_pod(f"stuck{n}", "web", phase="Pending", annotations=annotation) for n in range(2)]
    for each in stuck:
        each["metadata"]["creationTimestamp"] = "2025-12-31T23:59:00Z"
        each["status"]["conditions"] = [UNSCHEDULABLE]
    return [*running, *stuck]


PLACES = [("a", 1), ("a", 2), ("b", 1), ("c", 1), ("c", 2)]


async def end(world: Zones) -> Any:
    """Return all that the controller is to bring about."""
    found = [
        (each["metadata"]["name"], each["metadata"].get("annotations"))
        for each in await world.all(PODS)
    ]
    status = await world.status()
    return sorted(found, key=lambda each: each[0]), status


async def lived(writes: int | None, when: When) -> tuple[Any, bool]:
    """Live with a controller that is killed after so many writes, and one that follows it."""
    async with zones(run="none") as world:
        world.hands.cancel()
        reception = in_process_endpoint(world.cluster.api)
        world.load(a_replica_set(replicas=7), *pods())
        subsets = [in_zone("a", 1), in_zone("b", 1), in_zone("c")]
        await world.make_spread(*subsets, scheduleStrategy=ADAPTIVE)
        process = Process(world.cluster, writes, when, reception=reception)
        await world.passes(5)
        killed = process.dead
        await process.kill()
        if killed:
            process = Process(world.cluster, reception=reception)
            await world.passes(5)
            await process.kill()
        return await end(world), killed


def without_times(outcome: Any) -> Any:
    """Remove the transition times of conditions: they are those of the first writer."""
    found, status = outcome
    for entries in (status["subsetStatuses"], *status["versionedSubsetStatuses"].values()):
        for entry in entries:
            for condition in entry["conditions"]:
                condition.pop("lastTransitionTime")
    return found, status


@pytest.mark.parametrize("when", When)
async def test_whenever_it_is_killed_the_next_one_ends_up_the_same(when: When) -> None:
    whole, killed = await lived(None, when)
    assert not killed
    wanted = without_times(whole)
    assert [name for name, _ in wanted[0]] == [f"{zone}{number}" for zone, number in PLACES]
    writes = 0
    while True:
        outcome, killed = await lived(writes, when)
        if not killed:
            break
        assert without_times(outcome) == wanted, writes
        writes += 1
    assert writes > 10
