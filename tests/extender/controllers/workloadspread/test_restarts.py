"""A controller that is killed between any two of its writes and started again ends up the same."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.rest.resources import PODS
from fakeapi.simulation.background_tasks import in_process_endpoint
from tests.builders import Document
from tests.builders.replicas import a_pod, a_replica_set
from tests.builders.workloadspread import in_zone
from tests.extender.controllers.workloadspread.killable_controller import Process, When
from tests.extender.controllers.workloadspread.stages import stuck_pod
from tests.extender.controllers.workloadspread.zones import zones

ADAPTIVE = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 5}}
PLACES = [("a", 1), ("a", 2), ("b", 1), ("c", 1), ("c", 2)]


def pods() -> list[Document]:
    """Build pods to adopt, to give a deletion cost, and to reschedule."""
    running = [a_pod(f"{zone}{number}", "web", node=f"node-{zone}") for zone, number in PLACES]
    return [*running, *map(stuck_pod, ("stuck0", "stuck1"))]


async def run(writes: int | None, when: When) -> tuple[Any, bool]:
    """Run a controller that is killed after so many writes, and another one after it.

    Return the annotations of the pods and the status, and whether the first was killed.
    """
    async with zones(run="none", simulated=False) as stage:
        endpoint = in_process_endpoint(stage.cluster.api)
        stage.load(a_replica_set(replicas=7), *pods())
        subsets = [in_zone("a", 1), in_zone("b", 1), in_zone("c")]
        await stage.create_spread(*subsets, scheduleStrategy=ADAPTIVE)
        process = Process(stage.cluster, writes, when, endpoint=endpoint)
        await stage.passes(5)
        killed = process.is_cut_off
        await process.kill()
        if killed:
            process = Process(stage.cluster, endpoint=endpoint)
            await stage.passes(5)
            await process.kill()
        metadata = [each["metadata"] for each in await stage.all(PODS)]
        found = sorted((each["name"], each.get("annotations")) for each in metadata)
        return (found, without_times(await stage.status())), killed


def without_times(status: Document) -> Document:
    """Remove the transition times of conditions: they are those of the first writer."""
    for entries in (status["subsetStatuses"], *status["versionedSubsetStatuses"].values()):
        for entry in entries:
            for condition in entry["conditions"]:
                condition.pop("lastTransitionTime")
    return status


@pytest.mark.parametrize("when", When)
async def test_a_restarted_controller_ends_up_the_same(when: When) -> None:
    expected, killed = await run(None, when)
    assert not killed
    assert [name for name, _ in expected[0]] == [f"{zone}{number}" for zone, number in PLACES]
    writes = 0
    while True:
        outcome, killed = await run(writes, when)
        if not killed:
            break
        assert outcome == expected, writes
        writes += 1
    assert writes > 10
