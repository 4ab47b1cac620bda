"""Stages on which kubelets act."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from fakeapi import VirtualCluster
from tests.fakeapi.controlplane.kubelet.stages import KubeletStage, node

SetKubelets = Callable[..., Awaitable[KubeletStage]]


@pytest.fixture
async def kubelets() -> AsyncIterator[SetKubelets]:
    """Return stages with kubelets, and whatever else is to run; they end with the test."""
    async with AsyncExitStack() as stack:

        async def create(script: Any = "", run: str = "kubelet", seed: int = 0) -> KubeletStage:
            cluster = VirtualCluster(run=run, kubelet=script, seed=seed)
            return KubeletStage(await stack.enter_async_context(cluster))

        yield create


@pytest.fixture
async def stage(kubelets: SetKubelets) -> KubeletStage:
    """Return a stage with the node ``n``."""
    stage = await kubelets()
    stage.load(node("n", cpu="4", memory="8Gi"))
    await stage.passes(1)
    return stage
