"""Faults of the API server, in hundreds of runs without a socket.

Each life is five minutes of trouble and of changes to the cluster, with a question every few
seconds, then peace; :mod:`tests.faults.stage` says what every answer is held against. Then nothing
may have been lost: within ten minutes the extender is ready and knows all that there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import pytest

from fakeapi.testing.faults import Fault, fault
from tests.faults.rows import (
    API_DOWN,
    API_SLOW,
    EVERYTHING,
    GONE_STORM,
    HALF_FRAMES,
    REFUSALS,
    SILENT_SERVER,
    SILENT_WATCH,
    STALE_LISTS,
)
from tests.faults.stage import AGENT, Reply, Stage, ended, stage
from tests.faults.table import Row

TROUBLE_SECONDS: Final = 300.0
PEACE_SECONDS: Final = 600.0
MOST_REQUESTS: Final = 11 * 60
"""Of eleven informers in fifteen minutes: one each fifteen seconds."""

Mischief = Callable[[Stage], Awaitable[None]]


def planned(*faults: Fault, lag: float = 0.0) -> Mischief:
    """Have a plan of fakeapi's strike the extender."""

    async def begin(here: Stage) -> None:
        here.lag_seconds = lag
        here.cluster.faults.plan(
            *(each.by(AGENT) for each in faults), seed=here.rng.getrandbits(32)
        )

    return begin


async def comes_and_goes(here: Stage) -> None:
    """Be down for up to two minutes again and again, which breaks what is open."""
    while True:
        await here.cluster.clock.sleep(here.rng.uniform(1, 60))
        here.wire.down = True
        here.wire.cut()
        await here.cluster.clock.sleep(here.rng.uniform(1, 120))
        here.wire.down = False


async def connections_lead_nowhere(here: Stage) -> None:
    """Forget all open connections without a word, now and then; new ones are good."""
    while True:
        await here.cluster.clock.sleep(here.rng.uniform(1, 150))
        here.wire.fall_silent()


async def the_server_is_stuck(here: Stage) -> None:
    """Open watches, and say nothing on any, for longer than is believed."""
    here.wire.fall_silent()
    here.cluster.faults.plan(fault("silence", after_frames=0).on("watch").by(AGENT))


PLANS: Final[Sequence[tuple[Row, Mischief]]] = (
    (API_DOWN, comes_and_goes),
    (
        API_SLOW,
        planned(
            fault("latency", least=0.1, most=80).probability(0.5),
            fault("lag", seconds=20).on("watch"),
            lag=20,
        ),
    ),
    (
        GONE_STORM,
        planned(
            fault("expire", after_frames=1).on("watch").probability(0.7),
            fault("compact").on("watch").probability(0.5),
        ),
    ),
    (SILENT_WATCH, connections_lead_nowhere),
    (SILENT_SERVER, the_server_is_stuck),
    (
        HALF_FRAMES,
        planned(
            fault("cut", after_frames=1).on("watch").probability(0.4),
            fault("cut", after_frames=2, end="clean").on("watch").probability(0.4),
            fault("drop", when="after", after_frames=1).on("watch").probability(0.4),
            fault("cut").on("list").probability(0.5),
        ),
    ),
    (
        REFUSALS,
        planned(
            fault(429, retry_after=5).probability(0.3),
            fault(503).probability(0.3),
            fault(500).probability(0.3),
        ),
    ),
    (
        STALE_LISTS,
        planned(
            fault("stale", behind=3).probability(0.7),
            fault("compact").on("watch").probability(0.5),
            fault("duplicate").on("watch").probability(0.5),
            fault("drop", when="after", after_frames=1).on("watch").probability(0.4),
        ),
    ),
    (
        EVERYTHING,
        planned(
            fault("latency", least=0, most=20).probability(0.3),
            fault(429, retry_after=2).probability(0.1),
            fault("drop").probability(0.2),
            fault("compact").on("watch").probability(0.1),
            fault("stale", behind=2).probability(0.3),
            fault("lag", seconds=5).on("watch").probability(0.3),
            fault("silence", seconds=40, after_frames=2).on("watch").probability(0.3),
            fault("cut", after_frames=1).on("watch").probability(0.2),
            fault("expire", after_frames=2).on("watch").probability(0.2),
            lag=5,
        ),
    ),
)


async def lived(seed: int, mischief: Mischief) -> tuple[Stage, list[Reply]]:
    """Live a life, and give the stage as it was left, with the answers of its troubled time."""
    async with stage(seed) as here:

        async def changes() -> None:
            while True:
                await here.cluster.clock.sleep(here.rng.uniform(1, 20))
                await here.change()

        async def asks() -> None:
            while True:
                await here.cluster.clock.sleep(here.rng.uniform(1, 8))
                await here.ask()

        trouble = asyncio.create_task(_begun(mischief, here))
        company = [asyncio.create_task(changes()), asyncio.create_task(asks())]
        try:
            await here.cluster.clock.advance(TROUBLE_SECONDS)
        finally:
            await ended([trouble, *company])
        troubled = list(here.replies)
        here.wire.down = False
        here.struck = here.cluster.faults.injected
        here.cluster.faults.end()
        await here.cluster.clock.advance(PEACE_SECONDS)
        assert here.is_current(), "something was lost"
        assert (await here.ask()).status == 200
        assert here.wire.requests <= MOST_REQUESTS, here.wire.requests
        return here, troubled


async def _begun(mischief: Mischief, here: Stage) -> None:
    await mischief(here)


@pytest.mark.sampled
@pytest.mark.parametrize(("row", "mischief"), PLANS, ids=[row.fault for row, _ in PLANS])
async def test_no_answer_is_wrong_and_nothing_is_lost(row: Row, mischief: Mischief) -> None:
    struck = []
    for seed in row.seeds:
        try:
            here, _ = await lived(seed, mischief)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        struck.append(here.struck)
    assert all(map(sum, zip(*struck, strict=True))), "a fault of the plan never struck"


async def test_a_stuck_server_makes_the_state_stale_in_time() -> None:
    _, troubled = await lived(1, the_server_is_stuck)
    refused = [reply.at for reply in troubled if reply.status == 503]
    assert refused
    assert all(reply.status == 503 for reply in troubled if reply.at > max(refused[0], 200))
