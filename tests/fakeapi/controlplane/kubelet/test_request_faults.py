"""Kubelets whose requests go wrong, and whose watches come late: nothing is lost by it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from extender.controllers.process.controller_manager import ComponentSwitch
from extender.kube.rest.resources import NODES
from fakeapi import VirtualCluster
from fakeapi.testing.faults import Fault, fault
from tests.fakeapi.controlplane.kubelet.faulty_kubelets import hindered_kubelets
from tests.fakeapi.controlplane.kubelet.stages import KubeletStage, asking, node, pod


class HinderedStage(KubeletStage):
    """A stage whose kubelets meet faults."""

    def __init__(self, cluster: VirtualCluster, kubelets: ComponentSwitch) -> None:
        super().__init__(cluster)
        self.kubelets = kubelets

    def hinder(self, *faults: Fault) -> None:
        """Have kubelets meet these faults from now on."""
        self.cluster.faults.plan(*(each.by("kubelet*") for each in faults))

    async def hinder_watches(self, *faults: Fault) -> None:
        """Have kubelets meet these faults, and begin their watches under them."""
        self.hinder(*faults)
        await self.kubelets.stop()
        self.kubelets.start()


@pytest.fixture
async def stage() -> AsyncIterator[HinderedStage]:
    """Return a stage with the node ``n``."""
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(VirtualCluster(run="none"))
        kubelets = await stack.enter_async_context(hindered_kubelets(cluster))
        stage = HinderedStage(cluster, kubelets)
        stage.load(node("n", cpu="4", memory="8Gi"))
        await stage.passes(1)
        yield stage


async def test_a_delete_that_comes_behind_a_status_is_heeded(stage: HinderedStage) -> None:
    await stage.hinder_watches(fault("lag", seconds=10).on("watch", "pods"))
    await stage.run(pod("p", script="{stages: [{after: 20s, ready: true}]}"))
    await stage.passes(15)
    await stage.tell_to_go("p")  # which is heard of ten seconds later, behind "ready"
    await stage.passes(60)
    assert await stage.phases() == {}


async def test_foreign_writes_before_a_heartbeat_are_kept(stage: HinderedStage) -> None:
    await stage.hinder_watches(fault("lag", seconds=320).on("watch", "nodes"))
    await stage.passes(330)
    await stage.say(NODES, "n", "{stages: [{ready: false}]}")
    await stage.passes(700)  # no less than two heartbeats
    assert (await stage.conditions("n"))["Ready"] == "False"


@pytest.mark.parametrize(
    "hindrance",
    [
        fault("drop").on("delete", "pods").once(),
        fault("drop", when="after").on("delete", "pods").once(),
        fault(500).on("delete", "pods").times(3),
        fault(429).on("patch", "pods", subresources="status").times(2),
        fault("drop").on("patch", "pods", subresources="status").times(2),
    ],
    ids=["reset", "reset after", "refused", "throttled", "no report"],
)
async def test_a_stopped_pod_is_finally_deleted(stage: HinderedStage, hindrance: Fault) -> None:
    await stage.run(pod("p"))
    await stage.passes(5)
    stage.hinder(hindrance)
    await stage.tell_to_go("p")
    await stage.passes(60)
    assert stage.cluster.faults.injected != (0,)
    assert await stage.phases() == {}


async def test_a_node_that_is_made_anew_finds_its_pods_at_last(stage: HinderedStage) -> None:
    ends = "{stages: [{after: 20s, exit: 0}]}"
    await stage.run(pod("p", script=ends, restartPolicy="Never"))
    await stage.passes(5)
    stage.hinder(fault(500).on("list", "pods").once())
    await stage.delete(NODES, "n")
    await stage.run(pod("q"))
    await stage.passes(1)
    stage.load(node("n", cpu="4", memory="8Gi"))
    await stage.passes(60)
    assert stage.cluster.faults.injected == (1,)
    assert await stage.phases() == {"p": "Succeeded", "q": "Running*"}


async def test_pods_are_let_in_whatever_goes_wrong(stage: HinderedStage) -> None:
    stage.hinder(
        fault(500).probability(0.3),
        fault(429).probability(0.2),
        fault("drop", when="after").probability(0.2),
        fault("latency", least=0, most=2).probability(0.3),
        fault("expire", after_frames=2).on("watch").probability(0.5),
        fault("compact").on("watch").probability(0.5),
    )
    await stage.run(*(pod(f"p{index}") for index in range(5)), pod("big", **asking(cpu="8")))
    await stage.passes(30)
    for index in range(3):
        await stage.tell_to_go(f"p{index}")
    await stage.passes(120)
    assert await stage.phases() == {"p3": "Running*", "p4": "Running*", "big": "Failed"}


async def test_pods_that_were_looked_up_once_go_though_none_can_be_looked_up(
    stage: HinderedStage,
) -> None:
    hog = "{{start: 0, stages: [{{}}, {{after: {}s, memory: 7900Mi}}]}}"
    await stage.run(*(pod(f"p{after}", script=hog.format(after)) for after in (10, 60)))
    await stage.passes(50)
    assert await stage.phases() == {"p10": "Failed", "p60": "Running*"}
    stage.hinder(fault(500).on("get", "pods"))
    await stage.passes(60)
    assert await stage.phases() == {"p10": "Failed", "p60": "Failed"}
