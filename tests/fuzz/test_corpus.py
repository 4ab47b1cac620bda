"""Inputs that were handled wrongly once, and a few random ones of each kind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.fuzz.kinds import KINDS, SERVERS

CORPUS: Final = Path(__file__).parent / "corpus"
FOUND: Final = sorted(path for path in CORPUS.glob("*/*") if path.is_file())


@pytest.fixture(autouse=True)
async def _stop_servers() -> AsyncIterator[None]:
    yield
    for server in SERVERS.values():
        await server.stop()


@pytest.mark.parametrize("path", FOUND, ids=[f"{each.parent.name}/{each.name}" for each in FOUND])
async def test_an_input_that_was_handled_wrongly_is_handled(path: Path) -> None:
    data = await asyncio.to_thread(path.read_bytes)
    await KINDS[path.parent.name].check(data)


@pytest.mark.parametrize("name", KINDS)
async def test_random_inputs_are_handled(name: str) -> None:
    for number in range(10):
        await KINDS[name].check(KINDS[name].generate(Random(f"default/{name}/{number}")))
