"""Stages with kubelets; they end with the test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.fakeapi.controlplane.kubelet.stages import KubeletStage, node
from tests.stage import Opener, opener

SetKubelets = Opener[KubeletStage]


@pytest.fixture
async def kubelets() -> AsyncIterator[SetKubelets]:
    """Return a function that opens stages with objects, kubelets and the components of ``run``."""
    async with opener(KubeletStage, run="kubelet") as create:
        yield lambda *objects, run="", **options: create(run, *objects, **options)


@pytest.fixture
async def stage(kubelets: SetKubelets) -> KubeletStage:
    """Return a stage with the node ``n``."""
    return await kubelets(node("n", cpu="4", memory="8Gi"), seconds=1)
