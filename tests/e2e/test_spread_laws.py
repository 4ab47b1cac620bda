"""The laws of spreading over two hundred random histories; unit tests have twenty of them."""

from __future__ import annotations

from typing import Final

import pytest

from tests.extender.controllers.workloadspread.history_runner import run_each

SEEDS: Final = 200
AT_ONCE: Final = 10


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
async def test_laws(first: int) -> None:
    await run_each(range(first, first + AT_ONCE))
