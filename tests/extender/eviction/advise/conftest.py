"""Stages with kubelets, and advisors that end with the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from extender.eviction.advise.run import ObservationOptions, ReliefOptions
from tests.extender.eviction.advise.clusters import Recorder, advising, watching
from tests.fakeapi.controlplane.kubelet.conftest import SetKubelets, kubelets
from tests.fakeapi.controlplane.kubelet.stages import KubeletStage, node

__all__ = ["kubelets"]

SetAdvisor = Callable[..., Recorder]


@pytest.fixture
async def stage(kubelets: SetKubelets) -> KubeletStage:
    """Return a stage with the node ``n`` of 2Gi, and budgets that are kept current."""
    return await small(kubelets)


async def small(
    kubelets: SetKubelets, *names: str, run: str = "kubelet,disruption"
) -> KubeletStage:
    stage = await kubelets(kubelet={"events": False}, run=run)
    size = {"cpu": "4", "memory": "2Gi", "ephemeral-storage": "20Gi"}
    stage.load(*(node(name, **size) for name in names or ("n",)))
    await stage.passes(1)
    return stage


@pytest.fixture
async def advisor(stage: KubeletStage) -> AsyncIterator[SetAdvisor]:
    """Return advisors that watch the stage."""
    tasks: list[asyncio.Task[int]] = []

    def start(
        options: ReliefOptions | None = None, looking: ObservationOptions | None = None
    ) -> Recorder:
        cluster = stage.cluster
        transport = cluster.local_transport()
        task, recorder = advising(transport, cluster.clock, looking or watching(), options)
        tasks.append(task)
        return recorder

    yield start
    for task in tasks:
        task.cancel()
        await asyncio.wait((task,))
