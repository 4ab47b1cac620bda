"""Stages on which a scheduler acts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from fakeapi import VirtualCluster
from tests.fakeapi.controlplane.scheduler.stages import SchedulerStage

SetScheduler = Callable[..., Awaitable[SchedulerStage]]


@pytest.fixture
async def schedule() -> AsyncIterator[SetScheduler]:
    """Return stages with a scheduler of these options; they end with the test."""
    async with AsyncExitStack() as stack:

        async def create(run: str = "scheduler", **options: Any) -> SchedulerStage:
            cluster = VirtualCluster(run=run, **options)
            return SchedulerStage(await stack.enter_async_context(cluster))

        yield create
