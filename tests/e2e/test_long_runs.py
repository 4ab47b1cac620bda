"""Long versions of default tests: more seeds, and more nodes."""

from __future__ import annotations

import pytest

from tests.extender.controllers.workloadspread.history_runner import run_each
from tests.fakeapi.controlplane.kubelet.leaks.memory_leak_checks import live_an_hour
from tests.fakeapi.replay.churn_recording import played_back


@pytest.mark.parametrize("seed", range(100, 150))
async def test_replays_of_ten_minutes_of_random_changes(seed: int) -> None:
    await played_back(seed)


@pytest.mark.parametrize("resource", ["memory", "disk"])
async def test_an_hour_of_leaks_on_fifty_nodes(resource: str) -> None:
    await live_an_hour(resource, 50)


@pytest.mark.parametrize("first", range(0, 200, 10))
async def test_laws_of_spreading_over_ten_random_histories(first: int) -> None:
    await run_each(range(first, first + 10))
