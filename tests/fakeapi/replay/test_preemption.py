"""Recorded decisions of kube-scheduler with Reprieve, made again by the fake scheduler."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from extender.protocol.verb_context import Search
from extender.recording.files import read_recording
from fakeapi import VirtualCluster
from fakeapi.controlplane.scheduler.options import Call, Reply
from fakeapi.replay.report import Report
from fakeapi.testing.extenders import InProcessReprieve
from policies.kubernetes.releases import release
from policies.preemption.policy import SchedulerRules
from tests.fakeapi.controlplane.scheduler.stages import X, configured
from tests.fakeapi.replay.replays import replayed
from tests.properties.sampling import seeds

FILE = Path(__file__).parents[2] / "recorded" / "preemption.jsonl.gz"
PREEMPTION = read_recording(str(FILE))
UPSTREAM = "1.37"
_ARGS = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}
ONE_CANDIDATE = [{"pluginConfig": [{"name": "DefaultPreemption", "args": _ARGS}]}]
"""The configuration of the recorded scheduler: it offers its extender one node."""


async def decided(run: str, seed: int = 0, **options: Any) -> Report:
    """Replay it with a scheduler that makes all decisions again."""
    return await replayed(PREEMPTION, run, seed, upstream=UPSTREAM, **options)


async def decided_with_reprieve(run: str, seed: int = 0, takes: float = 0.0) -> Report:
    reprieve = InProcessReprieve(Search.CLUSTER, SchedulerRules(release(UPSTREAM)))

    async def ask(call: Call) -> Reply:
        await cluster.clock.sleep(takes)
        return await reprieve(call)

    options: dict[str, Any] = {"run": run, "seed": seed, "upstream": UPSTREAM}
    options["scheduler"] = configured({}, profiles=ONE_CANDIDATE)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(
            VirtualCluster(start_ns=PREEMPTION.header.start_ns, extenders={X: ask}, **options)
        )
        await stack.enter_async_context(reprieve.following(cluster))
        return await cluster.replay(PREEMPTION)


def counts(report: Report) -> tuple[tuple[int, int], ...]:
    """Return how many pods were bound, nominated and preempted, recorded and replayed."""
    assert report.scheduling is not None
    of = report.scheduling.placed, report.scheduling.nominated, report.scheduling.preempted
    return tuple((each.recorded, each.replayed) for each in of)


@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize("run", ["scheduler", "scheduler,replicaset,gc,namespaces"])
async def test_with_reprieve_decisions_equal_the_recorded_ones(run: str, seed: int) -> None:
    report = await decided_with_reprieve(run, seed)
    assert counts(report) == ((11, 11), (5, 5), (6, 6))
    assert report.deletions.recorded == report.deletions.replayed == {"scheduler": 6}
    assert report.same


@pytest.mark.parametrize("seed", seeds(1, 3))
async def test_a_scheduler_that_tries_every_node_decides_the_same(seed: int) -> None:
    assert (await decided("scheduler,replicaset", seed)).same


@pytest.mark.parametrize("seed", seeds(1, 3))
async def test_without_the_extender_one_candidate_is_seldom_the_best(seed: int) -> None:
    """With one candidate node it preempts there: the report names each pod that differs."""
    report = await decided("scheduler", seed, scheduler={"profiles": ONE_CANDIDATE})
    assert report.scheduling is not None
    differing = {each.name for each in report.scheduling.preempted.differences}
    deleted = {each.name for each in report.deletions.differences}
    assert differing
    assert differing == deleted
    assert not report.same


async def test_the_recorded_decisions_are_upstreams() -> None:
    """The latest to start are preempted first, and the budget is kept."""
    report = await decided("none")
    assert (report.same, report.scheduling) == (True, None)
    there = {event.key: event.document() for event in PREEMPTION.events if event.is_object_event}
    gone = {event.key for event in PREEMPTION.events if event.type == "DELETED"}
    assert gone == {f"shop/batch-{n}" for n in (2, 3, 4, 5, 6)} | {"shop/web-3"}
    places = {key: there[key]["spec"]["nodeName"] for key in there if key.startswith("shop/urgent")}
    assert places == {f"shop/urgent-{n}": f"node-{6 - n}" for n in range(3)}
    assert there["shop/huge"]["spec"]["nodeName"] == "node-3"


@pytest.mark.parametrize("seconds", [0.2, 0.9])
async def test_a_slow_extender_decides_the_same(seconds: float) -> None:
    """Recorded victims are deleted before the replayed ones are chosen, which then end at once."""
    report = await decided_with_reprieve("scheduler,replicaset", takes=seconds)
    assert counts(report) == ((11, 11), (5, 5), (6, 6))
    assert report.same
