"""The whole loop, played once on a clock of its own: what it leaves behind, and what is told."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from extender.verdict import Search
from fakeapi import VirtualCluster
from fakeapi.controlplane.scheduler.trace import Verdict
from fakeapi.demo.chapters import Chapter
from fakeapi.demo.directing import Director, Outcome
from fakeapi.demo.screens import LineScreen
from fakeapi.demo.sights import PRESSURE_TAINT, Sight
from fakeapi.demo.staging import RUN, Stage, scheduler_configuration
from fakeapi.demo.summary import sum_up
from fakeapi.demo.witnessing import Witness
from fakeapi.insider import REPRIEVE, Reprieve
from fakeapi.scenarios.loop import POOL, Story, loop_story

STORY = loop_story()


@asynccontextmanager
async def staged(story: Story, seed: int = 0, run: str = RUN) -> AsyncIterator[Stage]:
    """Return a stage without sockets, on which time jumps."""
    witness = Witness()
    reprieve = Reprieve(Search.CLUSTER, journal=witness)
    made = VirtualCluster(
        run=run,
        seed=seed,
        kubelet=story.kubelet,
        scheduler=scheduler_configuration(REPRIEVE),
        extenders={REPRIEVE: reprieve},
    )
    async with made as cluster, reprieve.following(cluster), cluster.clock.jumping():
        witness.service = reprieve.service
        yield Stage(cluster.client, cluster.clock, cluster.scheduler.trace, witness)


async def played(story: Story, seed: int = 0, run: str = RUN) -> tuple[Outcome, list[str]]:
    text = StringIO()
    screen = LineScreen(Console(file=text, width=140))
    async with staged(story, seed, run) as stage:
        outcome = await Director(stage, story, screen).play()
    return outcome, text.getvalue().splitlines()


@pytest.fixture(scope="module")
def told() -> tuple[Outcome, list[str]]:
    return asyncio.run(played(STORY))


@pytest.fixture
def sight(told: tuple[Outcome, list[str]]) -> Sight:
    return told[0].sight


def test_the_story_comes_to_its_end(told: tuple[Outcome, list[str]]) -> None:
    outcome, lines = told
    assert (outcome.chapter, outcome.missing) == (Chapter.END, ())
    assert [line[9:] for line in lines if line[9:].startswith("== ")] == [
        f"== {chapter.value}" for chapter in Chapter
    ]


def test_the_burst_runs_on_reserved_nodes_and_budgets_are_kept(sight: Sight) -> None:
    pools = {node.name: node.labels[POOL] for node in sight.nodes}
    places = [pod.node for pod in sight.pods if pod.key in STORY.coming and pod.ready]
    assert [pools[node] for node in places] == ["reserved"] * len(STORY.coming)
    gone = Counter(each.pod.rpartition("-")[0] for each in sight.preempted())
    assert gone == {"data/import": 1, "data/crawl": 1, "shop/web": 1, "data/report": 5}
    assert not any(each.budgets_broken for each in sight.deliberations)
    assert sum(pod.ready for pod in sight.pods_of("shop/checkout")) == 4


def test_every_victim_is_gone_and_another_pod_has_come_for_it(sight: Sight) -> None:
    gone = {each.uid for each in sight.preempted()}
    assert gone <= sight.before
    assert not gone & {pod.uid for pod in sight.pods}
    evicted = [pod for pod in sight.pods if pod.evicted]
    assert len(sight.replacements()) == len(gone) + len(evicted)
    assert {key: len(sight.pods_of(key)) for key in STORY.wanted} == STORY.wanted


def test_of_the_reports_that_were_made_again_one_finds_the_last_spot_machine(sight: Sight) -> None:
    reports = [pod for pod in sight.replacements() if pod.workload == "data/report"]
    assert {pod.subset for pod in reports} == {"spot"}
    placed = [pod.node for pod in reports if pod.node]
    assert [node.partition("-")[0] for node in placed] == ["spot"]
    for pod in reports:
        told = sight.refusal(pod)
        assert pod.node or "Insufficient cpu" in told
        assert pod.node or told.endswith("not eligible due to preemptionPolicy=Never.")


def test_the_web_pod_that_had_to_go_takes_a_place_in_turn(sight: Sight) -> None:
    [web] = [pod for pod in sight.replacements() if pod.workload == "shop/web"]
    assert (web.subset, web.ready) == ("reserved", True)
    assert [each.node for each in sight.preempted() if each.preemptor == web.uid] == [web.node]


def test_the_pod_that_leaks_is_evicted_and_its_node_is_avoided(sight: Sight) -> None:
    [evicted] = sight.evicted()
    assert evicted.workload == STORY.leaking
    assert evicted.message.startswith("The node was low on resource: memory. ")
    [node] = [node for node in sight.nodes if node.short_of_memory]
    assert node.name == evicted.node
    assert f"{PRESSURE_TAINT}:NoSchedule" in node.taints
    [other] = sight.pods_of(STORY.leaking)
    assert other.node == ""
    assert "1 node(s) had untolerated taint(s)" in sight.refusal(other)


def test_the_summary_explains_every_preemption(sight: Sight) -> None:
    told = sum_up(sight, STORY, 1.0)
    preemptors = [each.preemptor for each in told.preemptions]
    assert preemptors[: len(STORY.coming)] == list(STORY.coming)
    assert sum(len(each.victims) for each in told.preemptions) == len(sight.preempted())
    assert [each.why for each in told.preemptions[:2]] == [
        "best of 6 by smallest sum of priorities",
        "best of 6 by lowest priority of the first victim",
    ]
    spared = " ".join(reason for each in told.preemptions for reason in each.spared)
    for reason in (
        "the budget shop/checkout would be broken",
        "ahead of who goes by highest priority",
        "small enough to stay",
    ):
        assert reason in spared
    [calls] = told.calls
    assert (calls.verb, calls.count) == ("preempt", len(told.preemptions))
    assert {each.verdict for each in sight.exchanges} == {Verdict.ACCEPTED}


def test_the_same_seed_tells_the_same_story(told: tuple[Outcome, list[str]]) -> None:
    assert asyncio.run(played(STORY)) == told


def unimportant() -> Story:
    """Return the story of a burst that is no more important than what is there."""
    burst = [{**pod, "spec": {**pod["spec"], "priorityClassName": "batch"}} for pod in STORY.burst]
    return replace(STORY, burst=tuple(burst))


async def test_a_burst_that_may_not_preempt_is_told_of() -> None:
    outcome, _ = await played(unimportant())
    assert outcome.chapter is Chapter.BURST
    assert outcome.missing == (
        *(f"{key} has no node" for key in STORY.coming),
        "nobody was preempted",
        "no replacement waits for a node",
    )


async def test_a_pod_that_does_not_leak_is_told_of(told: tuple[Outcome, list[str]]) -> None:
    outcome, lines = await played(replace(STORY, leak="{}"), seed=1)
    assert not set(lines) & set(told[1][-12:])  # another seed, another story
    assert outcome.chapter is Chapter.PRESSURE
    assert outcome.missing == (
        "no pod of data/cache was evicted",
        "no node reports MemoryPressure",
    )


async def test_what_the_api_server_refuses_is_told_of() -> None:
    outcome, _ = await played(replace(STORY, setting=()))
    assert outcome.chapter is Chapter.FILLING
    [missing] = outcome.missing
    assert missing.startswith("the API server says: ")
    assert 'namespaces "shop" not found' in missing


@pytest.mark.parametrize(
    ("part", "chapter", "missing"),
    [
        ("kubelet", Chapter.START, "0 of 9 nodes are ready"),
        ("scheduler", Chapter.FILLING, "shop/checkout: 0 of 4 pods have a node"),
    ],
)
async def test_a_part_that_does_not_run_is_missed(
    part: str, chapter: Chapter, missing: str
) -> None:
    run = ",".join(name for name in RUN.split(",") if name != part)
    outcome, _ = await played(STORY, run=run)
    assert (outcome.chapter, outcome.missing) == (chapter, (missing,))
