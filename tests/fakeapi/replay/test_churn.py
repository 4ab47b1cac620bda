"""Ten minutes of everything at once, played back; tests/e2e plays fifty others."""

from __future__ import annotations

import pytest

from tests.fakeapi.replay.churn_recording import played_back


@pytest.mark.parametrize("seed", range(1))
async def test_ten_minutes_of_everything_are_played_back(seed: int) -> None:
    await played_back(seed)
