"""Operators of others run on fakeapi: they reconcile, keep their leases, and log no error."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.conformance.operators.injected_faults import NAMED, injected_faults
from tests.conformance.operators.setups import SETUPS, Setup

LONG_SECONDS: Final = 600.0


@pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)
async def test_an_operator_reconciles_and_logs_no_error(setup: Setup, tmp_path: Path) -> None:
    async with setup.run(tmp_path) as operators:
        await operators.cluster.play(setup.scenarios, "first")
        assert all(operators.holders())
    assert not operators.errors()


@pytest.mark.slow
@pytest.mark.timeout(2 * LONG_SECONDS)
@pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)
async def test_an_operator_withstands_ten_minutes_of_faults(setup: Setup, tmp_path: Path) -> None:
    async with setup.run(tmp_path) as operators:
        await operators.cluster.play(setup.scenarios, "first")
        holders, faults = operators.holders(), operators.cluster.server.faults
        plan = injected_faults(setup.clients)
        faults.plan(*plan)
        for name in rounds(LONG_SECONDS):
            await operators.cluster.play((*setup.scenarios, *setup.longer), name)
        injected = {
            each.fields["fault"] for each, count in zip(plan, faults.injected, strict=True) if count
        }
        assert injected == {each.fields["fault"] for each in plan}
        assert operators.holders() == holders
    assert not operators.errors(NAMED)


def rounds(seconds: float) -> Iterator[str]:
    """Return names of rounds until the time is over."""
    clock, number = asyncio.get_running_loop(), 0
    end = clock.time() + seconds
    while clock.time() < end:
        number += 1
        yield f"round-{number}"
