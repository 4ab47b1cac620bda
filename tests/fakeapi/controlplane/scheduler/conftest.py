"""Stages with a scheduler; they end with the test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.fakeapi.controlplane.scheduler.stages import SchedulerStage, SetScheduler
from tests.stage import opener


@pytest.fixture
async def schedule() -> AsyncIterator[SetScheduler]:
    """Return a function that opens stages with objects and a scheduler of these options."""
    async with opener(SchedulerStage, run="scheduler") as create:
        yield lambda *objects, run="", **options: create(run, *objects, **options)
