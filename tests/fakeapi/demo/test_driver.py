"""The whole loop, played once on a virtual clock: what it leaves behind, and what is shown."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from extender.protocol.verb_context import Search
from fakeapi import VirtualCluster
from fakeapi.controlplane.scheduler.extender_trace import ExtenderOutcome
from fakeapi.demo.decisions import DecisionCollector
from fakeapi.demo.driver import DemoDriver, DemoOutcome
from fakeapi.demo.environment import COMPONENTS, DemoCluster, scheduler_configuration
from fakeapi.demo.observed_state import PRESSURE_TAINT, ObservedState
from fakeapi.demo.output import LineScreen
from fakeapi.demo.scenarios.preemption_story import POOL, LoopScenario, loop_scenario
from fakeapi.demo.steps import DemoStep
from fakeapi.demo.summary import summarize
from fakeapi.testing.extenders import REPRIEVE_URL, InProcessReprieve

STORY = loop_scenario()


@asynccontextmanager
async def staged(
    story: LoopScenario, seed: int = 0, run: str = COMPONENTS
) -> AsyncIterator[DemoCluster]:
    """Return a stage without sockets, on which time jumps."""
    witness = DecisionCollector()
    reprieve = InProcessReprieve(Search.CLUSTER, journal=witness)
    made = VirtualCluster(
        run=run,
        seed=seed,
        kubelet=story.kubelet,
        scheduler=scheduler_configuration(REPRIEVE_URL),
        extenders={REPRIEVE_URL: reprieve},
    )
    async with made as cluster, reprieve.following(cluster), cluster.clock.jumping():
        witness.service = reprieve.service
        yield DemoCluster(cluster.client, cluster.clock, cluster.scheduler.trace, witness)


async def played(
    story: LoopScenario, seed: int = 0, run: str = COMPONENTS
) -> tuple[DemoOutcome, list[str]]:
    text = StringIO()
    screen = LineScreen(Console(file=text, width=140))
    async with staged(story, seed, run) as stage:
        outcome = await DemoDriver(stage, story, screen).run()
    return outcome, text.getvalue().splitlines()


@pytest.fixture(scope="module")
def told() -> tuple[DemoOutcome, list[str]]:
    return asyncio.run(played(STORY))


@pytest.fixture
def sight(told: tuple[DemoOutcome, list[str]]) -> ObservedState:
    return told[0].state


def test_the_demo_completes(told: tuple[DemoOutcome, list[str]]) -> None:
    outcome, lines = told
    assert (outcome.step, outcome.missing) == (DemoStep.END, ())
    assert [line[9:] for line in lines if line[9:].startswith("== ")] == [
        f"== {chapter.value}" for chapter in DemoStep
    ]


def test_the_burst_runs_on_reserved_nodes_and_budgets_are_kept(sight: ObservedState) -> None:
    pools = {node.name: node.labels[POOL] for node in sight.nodes}
    places = [pod.node for pod in sight.pods if pod.key in STORY.burst_pods and pod.ready]
    assert [pools[node] for node in places] == ["reserved"] * len(STORY.burst_pods)
    gone = Counter(each.pod.rpartition("-")[0] for each in sight.preempted())
    assert gone == {"data/import": 1, "data/crawl": 1, "shop/web": 1, "data/report": 5}
    assert not any(each.pdb_violations for each in sight.decisions)
    assert sum(pod.ready for pod in sight.pods_of("shop/checkout")) == 4


def test_every_victim_is_gone_and_another_pod_has_come_for_it(sight: ObservedState) -> None:
    gone = {each.uid for each in sight.preempted()}
    assert gone <= sight.pods_before_burst
    assert not gone & {pod.uid for pod in sight.pods}
    evicted = [pod for pod in sight.pods if pod.evicted]
    assert len(sight.replacements()) == len(gone) + len(evicted)
    assert {key: len(sight.pods_of(key)) for key in STORY.wanted_replicas} == STORY.wanted_replicas


def test_of_the_reports_that_were_made_again_one_finds_the_last_spot_machine(
    sight: ObservedState,
) -> None:
    reports = [pod for pod in sight.replacements() if pod.workload == "data/report"]
    assert {pod.subset for pod in reports} == {"spot"}
    placed = [pod.node for pod in reports if pod.node]
    assert [node.partition("-")[0] for node in placed] == ["spot"]
    for pod in reports:
        told = sight.scheduling_failure(pod)
        assert pod.node or "Insufficient cpu" in told
        assert pod.node or told.endswith("not eligible due to preemptionPolicy=Never.")


def test_the_web_pod_that_had_to_go_takes_a_place_in_turn(sight: ObservedState) -> None:
    [web] = [pod for pod in sight.replacements() if pod.workload == "shop/web"]
    assert (web.subset, web.ready) == ("reserved", True)
    assert [each.node for each in sight.preempted() if each.preemptor == web.uid] == [web.node]


def test_the_pod_that_leaks_is_evicted_and_its_node_is_avoided(sight: ObservedState) -> None:
    [evicted] = sight.evicted()
    assert evicted.workload == STORY.leaking_workload
    assert evicted.message.startswith("The node was low on resource: memory. ")
    [node] = [node for node in sight.nodes if node.memory_pressure]
    assert node.name == evicted.node
    assert f"{PRESSURE_TAINT}:NoSchedule" in node.taints
    [other] = sight.pods_of(STORY.leaking_workload)
    assert other.node == ""
    assert "1 node(s) had untolerated taint(s)" in sight.scheduling_failure(other)


def test_the_summary_explains_every_preemption(sight: ObservedState) -> None:
    told = summarize(sight, STORY, 1.0)
    preemptors = [each.preemptor for each in told.preemptions]
    assert preemptors[: len(STORY.burst_pods)] == list(STORY.burst_pods)
    assert sum(len(each.victims) for each in told.preemptions) == len(sight.preempted())
    assert [each.reason for each in told.preemptions[:2]] == [
        "best of 6 by smallest sum of priorities",
        "best of 6 by lowest priority of the first victim",
    ]
    spared = " ".join(reason for each in told.preemptions for reason in each.reprieved)
    for reason in (
        "the budget shop/checkout would be violated",
        "ahead of the first victim by highest priority",
        "fits beside the preemptor",
    ):
        assert reason in spared
    [calls] = told.calls
    assert (calls.verb, calls.count) == ("preempt", len(told.preemptions))
    assert {each.verdict for each in sight.exchanges} == {ExtenderOutcome.ACCEPTED}


def test_the_same_seed_gives_the_same_demo(told: tuple[DemoOutcome, list[str]]) -> None:
    assert asyncio.run(played(STORY)) == told


def unimportant() -> LoopScenario:
    """Return the story of a burst that is no more important than what is there."""
    burst = [{**pod, "spec": {**pod["spec"], "priorityClassName": "batch"}} for pod in STORY.burst]
    return replace(STORY, burst=tuple(burst))


async def test_a_burst_that_may_not_preempt_is_reported() -> None:
    outcome, _ = await played(unimportant())
    assert outcome.step is DemoStep.BURST
    assert outcome.missing == (
        *(f"{key} has no node" for key in STORY.burst_pods),
        "no pod was preempted",
        "no replacement is unschedulable",
    )


async def test_a_pod_that_does_not_leak_is_reported(told: tuple[DemoOutcome, list[str]]) -> None:
    outcome, lines = await played(replace(STORY, leak_script="{}"), seed=1)
    assert not set(lines) & set(told[1][-12:])  # another seed, another story
    assert outcome.step is DemoStep.PRESSURE
    assert outcome.missing == ("no pod of data/cache was evicted", "no node reports MemoryPressure")


async def test_a_refusal_of_the_api_server_is_reported() -> None:
    outcome, _ = await played(replace(STORY, base_objects=()))
    assert outcome.step is DemoStep.FILLING
    [missing] = outcome.missing
    assert missing.startswith("the API server returned an error: ")
    assert 'namespaces "shop" not found' in missing


@pytest.mark.parametrize(
    ("part", "chapter", "missing"),
    [
        ("kubelet", DemoStep.START, "0 of 9 nodes are ready"),
        ("scheduler", DemoStep.FILLING, "shop/checkout: 0 of 4 pods have a node"),
    ],
)
async def test_a_part_that_does_not_run_is_missed(
    part: str, chapter: DemoStep, missing: str
) -> None:
    run = ",".join(name for name in COMPONENTS.split(",") if name != part)
    outcome, _ = await played(STORY, run=run)
    assert (outcome.step, outcome.missing) == (chapter, (missing,))
