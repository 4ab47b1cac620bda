"""Proactive evictions: nodes are cordoned, and pods are evicted within budgets, with Events."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from extender.eviction.advise.executor import COMPONENT
from extender.eviction.advise.run import ReliefOptions
from extender.kube.rest.resources import NODES, POD_DISRUPTION_BUDGETS, PODS
from fakeapi.testing.faults import fault
from tests.builders import Document, owner, thing
from tests.extender.eviction.advise.clusters import (
    Recorder,
    advising,
    doing,
    leaking,
    using,
    watching,
)
from tests.extender.eviction.advise.conftest import SetAdvisor, small
from tests.fakeapi.controlplane.kubelet.conftest import SetKubelets
from tests.fakeapi.controlplane.kubelet.stages import KubeletStage
from tests.stage import EVENTS

DAEMON = owner("agents", "DaemonSet", "apps/v1", controller=True)
LEAKY = {"app": "leaky"}
ACTS = 80


def budget(least: int) -> Document:
    document = thing("leaky", kind="PodDisruptionBudget", version="policy/v1")
    spec = {"minAvailable": least, "selector": {"matchLabels": LEAKY}}
    return {**document, "spec": spec}


def slowly(name: str, node: str = "n", **more: Any) -> Document:
    """Build a pod that takes 4Gi in half an hour: the node lasts for ten minutes."""
    return leaking(name, node, over="1800s", **more)


async def events(stage: KubeletStage) -> list[tuple[str, str, str]]:
    """Return the advisor's Events, with the object's name."""
    listed = await stage.all(EVENTS)
    ours = [each for each in listed if each["source"].get("component") == COMPONENT]
    return sorted((e["reason"], e["involvedObject"]["name"], e["message"]) for e in ours)


async def closed(stage: KubeletStage) -> list[str]:
    """Return the nodes that are cordoned."""
    listed = await stage.all(NODES)
    return [each["metadata"]["name"] for each in listed if each["spec"].get("unschedulable")]


async def pods(stage: KubeletStage) -> set[str]:
    return {each["metadata"]["name"] for each in await stage.all(PODS)}


async def test_without_yes_no_action_is_executed(stage: KubeletStage, advisor: SetAdvisor) -> None:
    await stage.run(slowly("greedy"), using("calm"))
    recorder = advisor(doing(20, really=False))
    before = len(stage.cluster.requests)
    await stage.passes(ACTS)
    [first, second, *_] = recorder.actions
    assert first.startswith("would cordon n (memory.available<100Mi in ")
    assert second.startswith("would evict default/greedy from n (memory.available<100Mi in ")
    asked = [each for each in list(stage.cluster.requests)[before:] if "eviction" in each.path]
    assert (asked, await closed(stage)) == ([], [])
    assert await pods(stage) == {"calm", "greedy"}


async def test_the_first_pod_is_evicted_from_a_cordoned_node_with_an_event(
    stage: KubeletStage, advisor: SetAdvisor
) -> None:
    await stage.run(slowly("greedy"), using("calm"))
    recorder = advisor(doing(20))
    await stage.passes(ACTS)
    cordoned, evicted = recorder.actions
    assert cordoned.startswith("did cordon n (memory.available<100Mi in ")
    assert evicted.startswith("did evict default/greedy from n (memory.available<100Mi in ")
    assert (await closed(stage), await pods(stage)) == (["n"], {"calm"})
    recorded = await events(stage)
    assert [each[:2] for each in recorded] == [("Cordoned", "n"), ("EvictedAhead", "greedy")]
    assert recorded[0][2].startswith("Cordoned: memory.available<100Mi in ")
    assert recorded[1][2].startswith("Evicted from n: memory.available<100Mi in ")


async def test_after_the_eviction_the_node_is_left_alone(
    stage: KubeletStage, advisor: SetAdvisor
) -> None:
    await stage.run(slowly("greedy"), using("calm"))
    recorder = advisor(doing(20))
    await stage.passes(400)
    assert len(recorder.executed) == 2
    await stage.patch(NODES, "n", {"spec": {"unschedulable": None}})  # another client uncordons it
    await stage.run(slowly("again"))
    await stage.passes(400)
    assert await closed(stage) == []
    assert await pods(stage) == {"calm"}


async def test_a_node_beyond_the_horizon_is_left_alone(
    stage: KubeletStage, advisor: SetAdvisor
) -> None:
    await stage.run(slowly("greedy"))
    recorder = advisor(doing(2))
    await stage.passes(ACTS)
    assert recorder.executed == []


async def test_a_blocked_eviction_is_retried(stage: KubeletStage, advisor: SetAdvisor) -> None:
    await stage.create(POD_DISRUPTION_BUDGETS, budget(1))
    await stage.run(slowly("greedy", labels=LEAKY), using("calm"))
    recorder = advisor(doing(20))
    await stage.passes(ACTS)
    assert await pods(stage) == {"calm", "greedy"}
    blocked = recorder.actions[1:]
    assert len(blocked) >= 2
    for each in blocked:
        assert each.startswith(
            "may not yet evict default/greedy from n (memory.available<100Mi in "
        )
        assert "Cannot evict pod as it would violate the pod's disruption budget." in each
    await stage.patch(POD_DISRUPTION_BUDGETS, "leaky", {"spec": {"minAvailable": 0}})
    await stage.passes(20)
    assert recorder.actions[-1].startswith("did evict default/greedy")
    assert await pods(stage) == {"calm"}
    reasons = {each[:2] for each in await events(stage)}
    assert ("EvictionBlocked", "greedy") in reasons


@pytest.mark.parametrize(
    "spared", [{"priorityClassName": "system-node-critical"}, {"owners": [DAEMON]}]
)
async def test_some_pods_are_never_evicted(
    spared: Any, stage: KubeletStage, advisor: SetAdvisor
) -> None:
    await stage.run(slowly("greedy", **spared), using("calm"))
    recorder = advisor(doing(20))
    await stage.passes(ACTS)
    assert "greedy" in await pods(stage)
    assert not any("greedy" in each for each in recorder.actions)


async def test_evictions_keep_their_rate(kubelets: SetKubelets) -> None:
    stage = await small(kubelets, "a", "b", "c")
    await stage.run(*(slowly(f"on-{name}", name) for name in ("a", "b", "c")))
    task, recorder = watch(stage, doing(20, per_minute=1))
    await stage.passes(65)
    gone = []
    for _ in range(4):
        gone.append(sum(each.startswith("did evict") for each in recorder.actions))
        await stage.passes(60)
    task.cancel()
    assert gone == [1, 2, 3, 3]


async def test_no_more_nodes_are_cordoned_than_the_limit(kubelets: SetKubelets) -> None:
    stage = await small(kubelets, "a", "b", "c")
    await stage.run(*(slowly(f"on-{name}", name) for name in ("a", "b", "c")))
    task, recorder = watch(stage, doing(20, most=1))
    await stage.passes(300)
    task.cancel()
    assert await closed(stage) == ["a"]
    assert await pods(stage) == {"on-b", "on-c"}
    why = "as many nodes are cordoned as --max-nodes allows"
    left = [each for each in recorder.actions if each.startswith("did not cordon ") and why in each]
    assert {each.split()[3] for each in left} == {"b", "c"}


async def test_no_pod_is_evicted_if_cordoning_fails(
    stage: KubeletStage, advisor: SetAdvisor
) -> None:
    stage.cluster.faults.plan(fault(403).at("/api/v1/nodes/n", "patch"))
    await stage.run(slowly("greedy"))
    recorder = advisor(doing(20))
    await stage.passes(ACTS)
    assert await pods(stage) == {"greedy"}
    assert {each.split(" (")[0] for each in recorder.actions} == {"could not cordon n"}
    assert "403" in recorder.actions[0]


async def test_a_failed_action_is_reported_and_retried_in_the_next_round(
    stage: KubeletStage, advisor: SetAdvisor
) -> None:
    refusals = fault(500).on("create", "pods", subresources="eviction").times(2)
    stage.cluster.faults.plan(refusals)
    await stage.run(slowly("greedy"))
    recorder = advisor(doing(20))
    await stage.passes(ACTS + 30)
    verbs = [" ".join(each.split()[:2]) for each in recorder.actions]
    assert verbs == ["did cordon", "could not", "could not", "did evict"]


async def test_a_single_run_ends_when_all_actions_are_done(stage: KubeletStage) -> None:
    await stage.run(slowly("greedy"), using("calm"))
    task, recorder = watch(stage, doing(20), samples=5)
    await stage.passes(70)
    assert await task == 0
    assert [each.split()[1] for each in recorder.actions] == ["cordon", "evict"]
    assert recorder.ends == [recorder.executed]
    assert len(await events(stage)) == 2


async def test_a_single_run_retries_blocked_evictions_until_its_timeout(
    stage: KubeletStage,
) -> None:
    await stage.create(POD_DISRUPTION_BUDGETS, budget(1))
    await stage.run(slowly("greedy", labels=LEAKY))
    task, recorder = watch(stage, doing(20), samples=5)
    await stage.passes(120)
    assert not task.done()
    await stage.patch(POD_DISRUPTION_BUDGETS, "leaky", {"spec": {"minAvailable": 0}})
    await stage.passes(20)
    assert await task == 0
    assert recorder.actions[-1].startswith("did evict default/greedy")


async def test_an_eviction_that_stays_blocked_is_a_failure(stage: KubeletStage) -> None:
    """Stop the growth in time, so that the kubelet does not evict the pod."""
    await stage.create(POD_DISRUPTION_BUDGETS, budget(1))
    await stage.run(leaking("greedy", most="1Gi", labels=LEAKY))
    task, recorder = watch(stage, doing(20), samples=5)
    await stage.passes(60 + 20 * 60)
    assert await task == 1
    assert {" ".join(each.split()[:3]) for each in recorder.actions[1:]} == {"may not yet"}


async def test_two_budgets_of_one_pod_are_a_failure_at_once(stage: KubeletStage) -> None:
    second = budget(1)
    second["metadata"] = {"name": "leaky-2", "namespace": "default"}
    for each in (budget(1), second):
        await stage.create(POD_DISRUPTION_BUDGETS, each)
    await stage.run(slowly("greedy", labels=LEAKY))
    task, recorder = watch(stage, doing(20), samples=5)
    await stage.passes(62)
    assert await task == 1
    assert recorder.actions[1].startswith("could not evict default/greedy")
    assert "more than one PodDisruptionBudget" in recorder.actions[1]


def watch(
    stage: KubeletStage, options: ReliefOptions, samples: int | None = None
) -> tuple[asyncio.Task[int], Recorder]:
    cluster, looking = stage.cluster, watching(samples=samples)
    return advising(cluster.local_transport(), cluster.clock, looking, options)
