"""Kubelets whose requests fail and whose watches lag recover without losing a change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from extender.controllers.process.controller_manager import ComponentSwitch
from extender.kube.rest.resources import NODES
from fakeapi import VirtualCluster
from fakeapi.testing.faults import Fault, fault
from tests.fakeapi.controlplane.kubelet.stages import (
    KubeletStage,
    asking,
    kubelets_of_a_client,
    node,
    pod,
)


class FaultStage(KubeletStage):
    """A stage whose kubelets' requests meet faults."""

    def __init__(self, cluster: VirtualCluster, kubelets: ComponentSwitch) -> None:
        super().__init__(cluster)
        self.kubelets = kubelets

    def plan(self, *faults: Fault) -> None:
        """Inject these faults into requests of kubelets from now on."""
        self.cluster.faults.plan(*(each.by("kubelet*") for each in faults))

    async def plan_for_watches(self, *faults: Fault) -> None:
        """Inject these faults, and restart the kubelets so that their watches meet them."""
        self.plan(*faults)
        await self.kubelets.stop()
        self.kubelets.start()


@pytest.fixture
async def stage() -> AsyncIterator[FaultStage]:
    """Return a stage with the node ``n``."""
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(VirtualCluster(run="none"))
        kubelets = await stack.enter_async_context(kubelets_of_a_client(cluster))
        stage = FaultStage(cluster, kubelets)
        stage.load(node("n", cpu="4", memory="8Gi"))
        await stage.passes(1)
        yield stage


async def test_a_delete_that_arrives_after_a_status_is_not_missed(stage: FaultStage) -> None:
    await stage.plan_for_watches(fault("lag", seconds=10).on("watch", "pods"))
    await stage.run(pod("p", script="{stages: [{after: 20s, ready: true}]}"), seconds=15)
    await stage.delete_pod("p")  # the watch shows it ten seconds later, after "ready"
    assert await stage.phases(after=60) == {}


async def test_foreign_writes_before_a_heartbeat_are_kept(stage: FaultStage) -> None:
    await stage.plan_for_watches(fault("lag", seconds=320).on("watch", "nodes"))
    await stage.passes(330)
    await stage.say(NODES, "n", "{stages: [{ready: false}]}")
    await stage.passes(700)  # no less than two heartbeats
    assert (await stage.conditions("n"))["Ready"] == "False"


@pytest.mark.parametrize(
    "rule",
    [
        fault("drop").on("delete", "pods").once(),
        fault("drop", when="after").on("delete", "pods").once(),
        fault(500).on("delete", "pods").times(3),
        fault(429).on("patch", "pods", subresources="status").times(2),
        fault("drop").on("patch", "pods", subresources="status").times(2),
    ],
    ids=["reset", "reset after", "refused", "throttled", "no report"],
)
async def test_a_stopped_pod_is_finally_deleted(stage: FaultStage, rule: Fault) -> None:
    await stage.run(pod("p"), seconds=5)
    stage.plan(rule)
    await stage.delete_pod("p")
    await stage.passes(60)
    assert stage.cluster.faults.injected != (0,)
    assert await stage.phases() == {}


async def test_a_node_that_is_created_again_finds_its_pods(stage: FaultStage) -> None:
    ends = "{stages: [{after: 20s, exit: 0}]}"
    await stage.run(pod("p", script=ends, restartPolicy="Never"), seconds=5)
    stage.plan(fault(500).on("list", "pods").once())
    await stage.delete(NODES, "n")
    await stage.run(pod("q"), seconds=1)
    stage.load(node("n", cpu="4", memory="8Gi"))
    await stage.passes(60)
    assert stage.cluster.faults.injected == (1,)
    assert await stage.phases() == {"p": "Succeeded", "q": "Running*"}


async def test_pods_are_admitted_despite_faults(stage: FaultStage) -> None:
    stage.plan(
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
        await stage.delete_pod(f"p{index}")
    assert await stage.phases(after=120) == {"p3": "Running*", "p4": "Running*", "big": "Failed"}


async def test_known_pods_are_evicted_while_no_pod_can_be_read(stage: FaultStage) -> None:
    hog = "{{start: 0, stages: [{{}}, {{after: {}s, memory: 7900Mi}}]}}"
    await stage.run(*(pod(f"p{after}", script=hog.format(after)) for after in (10, 60)), seconds=50)
    assert await stage.phases() == {"p10": "Failed", "p60": "Running*"}
    stage.plan(fault(500).on("get", "pods"))
    assert await stage.phases(after=60) == {"p10": "Failed", "p60": "Failed"}
