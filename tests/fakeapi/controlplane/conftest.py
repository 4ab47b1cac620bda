"""Stages on which parts of the control plane act."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from fakeapi import VirtualCluster
from tests.fakeapi.controlplane.stage import Stage

SetStage = Callable[..., Awaitable[Stage]]


@pytest.fixture
async def set_stage() -> AsyncIterator[SetStage]:
    """Return stages for the named parts; they end with the test."""
    async with AsyncExitStack() as stack:

        async def create(run: str, seed: int = 0) -> Stage:
            cluster = await stack.enter_async_context(VirtualCluster(run=run, seed=seed))
            return Stage(cluster)

        yield create
