"""A host's clock that is set wrong, and set again, changes no decision and no readiness.

What the host's clock is asked for: timestamps (of log lines, decisions kept, Events), and whether
certificates are valid. Deadlines, staleness, delays and assumed preemptions are intervals, and the
order of start times is that of the pods' own timestamps, from whichever clock.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.faults.rows import CLOCK_SKEW
from tests.faults.stage import Stage
from tests.faults.test_api_server import comes_and_goes, lived

HOUR = 3600.0


async def _by_a_clock_that_jumps(here: Stage) -> None:
    """Let the host's clock jump by random hours at each reading."""
    dice = Random(1)
    here.clock.jumps = lambda: dice.uniform(-12 * HOUR, 12 * HOUR)
    await comes_and_goes(here)


@pytest.mark.sampled
async def test_jumps_of_hours_change_no_answer_and_not_its_time() -> None:
    for seed in CLOCK_SKEW.seeds:
        straight, _ = await lived(seed, comes_and_goes)
        jumping, _ = await lived(seed, _by_a_clock_that_jumps)
        assert straight.replies == jumping.replies, f"seed {seed}"
        assert straight.wire.requests == jumping.wire.requests, f"seed {seed}"
