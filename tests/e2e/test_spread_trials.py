"""The laws of spreading over two hundred lives; twenty of them are among the unit tests."""

from __future__ import annotations

from typing import Final

import pytest

from tests.fakeapi.controllers.workloadspread.living import live
from tests.fakeapi.controllers.workloadspread.trials import draw

SEEDS: Final = 200
AT_ONCE: Final = 10


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
async def test_laws(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        trial = draw(seed)
        try:
            await live(trial)
        except AssertionError as error:
            error.add_note(f"seed {seed}: {trial}")
            raise
