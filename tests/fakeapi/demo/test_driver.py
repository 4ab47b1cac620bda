"""The whole demo on a virtual clock: the cluster afterwards, and the output."""

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

SCENARIO = loop_scenario()
Result = tuple[DemoOutcome, list[str]]
"""The outcome, and the printed lines."""


@asynccontextmanager
async def demo_cluster(
    scenario: LoopScenario, seed: int = 0, run: str = COMPONENTS
) -> AsyncIterator[DemoCluster]:
    """Run the cluster of the demo without sockets on a clock that jumps."""
    collector = DecisionCollector()
    reprieve = InProcessReprieve(Search.CLUSTER, journal=collector)
    made = VirtualCluster(
        run=run,
        seed=seed,
        kubelet=scenario.kubelet,
        scheduler=scheduler_configuration(REPRIEVE_URL),
        extenders={REPRIEVE_URL: reprieve},
    )
    async with made as cluster, reprieve.following(cluster), cluster.clock.jumping():
        collector.service = reprieve.service
        yield DemoCluster(cluster.client, cluster.clock, cluster.scheduler.trace, collector)


async def run_demo(scenario: LoopScenario, seed: int = 0, run: str = COMPONENTS) -> Result:
    text = StringIO()
    screen = LineScreen(Console(file=text, width=140))
    async with demo_cluster(scenario, seed, run) as stage:
        outcome = await DemoDriver(stage, scenario, screen).run()
    return outcome, text.getvalue().splitlines()


@pytest.fixture(scope="module")
def result() -> Result:
    return asyncio.run(run_demo(SCENARIO))


@pytest.fixture
def state(result: Result) -> ObservedState:
    return result[0].state


def test_the_demo_completes(result: Result) -> None:
    outcome, lines = result
    assert (outcome.step, outcome.missing) == (DemoStep.END, ())
    assert [line[9:] for line in lines if line[9:].startswith("== ")] == [
        f"== {step.value}" for step in DemoStep
    ]


def test_the_burst_runs_on_reserved_nodes_and_budgets_are_kept(state: ObservedState) -> None:
    pools = {node.name: node.labels[POOL] for node in state.nodes}
    places = [pod.node for pod in state.pods if pod.key in SCENARIO.burst_pods and pod.ready]
    assert [pools[node] for node in places] == ["reserved"] * len(SCENARIO.burst_pods)
    gone = Counter(each.pod.rpartition("-")[0] for each in state.preempted())
    assert gone == {"data/import": 1, "data/crawl": 1, "shop/web": 1, "data/report": 5}
    assert not any(each.pdb_violations for each in state.decisions)
    assert sum(pod.ready for pod in state.pods_of("shop/checkout")) == 4


def test_every_victim_is_deleted_and_replaced(state: ObservedState) -> None:
    gone = {each.uid for each in state.preempted()}
    assert gone <= state.pods_before_burst
    assert not gone & {pod.uid for pod in state.pods}
    evicted = [pod for pod in state.pods if pod.evicted]
    assert len(state.replacements()) == len(gone) + len(evicted)
    assert {
        key: len(state.pods_of(key)) for key in SCENARIO.wanted_replicas
    } == SCENARIO.wanted_replicas


def test_one_replacement_of_the_reports_runs_on_a_spot_node(state: ObservedState) -> None:
    reports = [pod for pod in state.replacements() if pod.workload == "data/report"]
    assert {pod.subset for pod in reports} == {"spot"}
    placed = [pod.node for pod in reports if pod.node]
    assert [node.partition("-")[0] for node in placed] == ["spot"]
    for pod in reports:
        message = state.scheduling_failure(pod)
        assert pod.node or "Insufficient cpu" in message
        assert pod.node or message.endswith("not eligible due to preemptionPolicy=Never.")


def test_the_replacement_of_a_web_pod_preempts(state: ObservedState) -> None:
    [web] = [pod for pod in state.replacements() if pod.workload == "shop/web"]
    assert (web.subset, web.ready) == ("reserved", True)
    assert [each.node for each in state.preempted() if each.preemptor == web.uid] == [web.node]


def test_the_leaking_pod_is_evicted_and_its_node_is_tainted(state: ObservedState) -> None:
    [evicted] = state.evicted()
    assert evicted.workload == SCENARIO.leaking_workload
    assert evicted.message.startswith("The node was low on resource: memory. ")
    [node] = [node for node in state.nodes if node.memory_pressure]
    assert node.name == evicted.node
    assert f"{PRESSURE_TAINT}:NoSchedule" in node.taints
    [other] = state.pods_of(SCENARIO.leaking_workload)
    assert other.node == ""
    assert "1 node(s) had untolerated taint(s)" in state.scheduling_failure(other)


def test_the_summary_explains_every_preemption(state: ObservedState) -> None:
    summary = summarize(state, SCENARIO, 1.0)
    preemptors = [each.preemptor for each in summary.preemptions]
    assert preemptors[: len(SCENARIO.burst_pods)] == list(SCENARIO.burst_pods)
    assert sum(len(each.victims) for each in summary.preemptions) == len(state.preempted())
    assert [each.reason for each in summary.preemptions[:2]] == [
        "best of 6 by smallest sum of priorities",
        "best of 6 by lowest priority of the first victim",
    ]
    spared = " ".join(reason for each in summary.preemptions for reason in each.reprieved)
    for reason in (
        "the budget shop/checkout would be violated",
        "ahead of the first victim by highest priority",
        "fits beside the preemptor",
    ):
        assert reason in spared
    [calls] = summary.calls
    assert (calls.verb, calls.count) == ("preempt", len(summary.preemptions))
    assert {each.verdict for each in state.exchanges} == {ExtenderOutcome.ACCEPTED}


def test_the_same_seed_gives_the_same_demo(result: Result) -> None:
    assert asyncio.run(run_demo(SCENARIO)) == result


async def test_a_burst_that_may_not_preempt_is_reported() -> None:
    batch = {"priorityClassName": "batch"}
    burst = ({**pod, "spec": {**pod["spec"], **batch}} for pod in SCENARIO.burst)
    outcome, _ = await run_demo(replace(SCENARIO, burst=tuple(burst)))
    assert outcome.step is DemoStep.BURST
    assert outcome.missing == (
        *(f"{key} has no node" for key in SCENARIO.burst_pods),
        "no pod was preempted",
        "no replacement is unschedulable",
    )


async def test_a_pod_that_does_not_leak_is_reported(result: Result) -> None:
    outcome, lines = await run_demo(replace(SCENARIO, leak_script="{}"), seed=2)
    assert not set(lines) & set(result[1][-12:])  # another seed
    assert outcome.step is DemoStep.PRESSURE
    assert outcome.missing == ("no pod of data/cache was evicted", "no node reports MemoryPressure")


async def test_an_error_of_the_api_server_is_reported() -> None:
    outcome, _ = await run_demo(replace(SCENARIO, base_objects=()))
    assert outcome.step is DemoStep.FILLING
    [missing] = outcome.missing
    assert missing.startswith("the API server returned an error: ")
    assert 'namespaces "shop" not found' in missing


@pytest.mark.parametrize(
    ("component", "step", "missing"),
    [
        ("kubelet", DemoStep.START, "0 of 9 nodes are ready"),
        ("scheduler", DemoStep.FILLING, "shop/checkout: 0 of 4 pods have a node"),
    ],
)
async def test_a_missing_component_is_named(component: str, step: DemoStep, missing: str) -> None:
    run = ",".join(name for name in COMPONENTS.split(",") if name != component)
    outcome, _ = await run_demo(SCENARIO, run=run)
    assert (outcome.step, outcome.missing) == (step, (missing,))
