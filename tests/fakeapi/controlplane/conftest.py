"""Stages with components of the control plane; they end with the test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.stage import Opener, Stage, opener

SetStage = Opener[Stage]


@pytest.fixture
async def set_stage() -> AsyncIterator[SetStage]:
    """Return a function that opens stages for the components of ``run``."""
    async with opener(Stage) as create:
        yield create
