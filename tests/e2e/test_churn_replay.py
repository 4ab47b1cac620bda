"""Fifty times ten minutes of everything at once, played back; another is among the unit tests."""

from __future__ import annotations

from typing import Final

import pytest

from tests.fakeapi.replay.churn_recording import played_back

SEEDS: Final = 50


@pytest.mark.parametrize("seed", range(100, 100 + SEEDS))
async def test_ten_minutes_of_everything_are_played_back(seed: int) -> None:
    await played_back(seed)
