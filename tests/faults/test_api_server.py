"""Faults of the API server, in hundreds of runs without a socket.

In each run, faults are injected for five minutes, while the cluster changes and the extender is
called every few seconds; :mod:`tests.faults.extender_environment` defines the right answers. Ten
minutes after the faults have ended, the extender must be ready and its caches up to date.

A wrong wall clock changes no decision and no readiness: it is used for timestamps (of log lines,
kept decisions, Events) and for the validity of certificates. Deadlines, staleness, delays and
assumed preemptions are intervals, and the order of start times is that of the pods' timestamps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Final

import pytest

from fakeapi.testing.faults import Fault, fault
from tests.faults import table
from tests.faults.extender_environment import AGENT, ExtenderEnvironment, Reply, cancel, environment
from tests.faults.table import CLOCK_SKEW, Row, noted

FAULT_SECONDS: Final = 300.0
RECOVERY_SECONDS: Final = 600.0
MOST_REQUESTS: Final = 11 * 60
"""Of eleven informers in fifteen minutes: one each fifteen seconds."""
HALF_A_DAY: Final = 12 * 3600.0

InjectFaults = Callable[[ExtenderEnvironment], Awaitable[None]]


def planned(*faults: Fault, lag: float = 0.0) -> InjectFaults:
    """Return what starts a fault plan of fakeapi for the extender's requests."""

    async def start(env: ExtenderEnvironment) -> None:
        env.lag_seconds = lag
        env.cluster.faults.plan(*(each.by(AGENT) for each in faults), seed=env.rng.getrandbits(32))

    return start


async def outages(env: ExtenderEnvironment) -> None:
    """Refuse requests for up to two minutes again and again, and reset open connections."""
    while True:
        await env.cluster.clock.sleep(env.rng.uniform(1, 60))
        env.transport.down = True
        env.transport.reset()
        await env.cluster.clock.sleep(env.rng.uniform(1, 120))
        env.transport.down = False


async def skewed_outages(env: ExtenderEnvironment) -> None:
    """Inject outages, and set the wall clock wrong by random hours at each reading."""
    rng = Random(1)
    env.clock.skew = lambda: rng.uniform(-HALF_A_DAY, HALF_A_DAY)
    await outages(env)


async def dead_connections(env: ExtenderEnvironment) -> None:
    """Stop delivery on open connections now and then; new ones work."""
    while True:
        await env.cluster.clock.sleep(env.rng.uniform(1, 150))
        env.transport.stop_delivery()


async def stuck_server(env: ExtenderEnvironment) -> None:
    """Open watches, but send nothing on any, for longer than the extender accepts."""
    env.transport.stop_delivery()
    env.cluster.faults.plan(fault("silence", after_frames=0).on("watch").by(AGENT))


PLANS: Final[Sequence[tuple[Row, InjectFaults]]] = (
    (table.API_DOWN, outages),
    (
        table.API_SLOW,
        planned(
            fault("latency", least=0.1, most=80).probability(0.5),
            fault("lag", seconds=20).on("watch"),
            lag=20,
        ),
    ),
    (
        table.GONE_STORM,
        planned(
            fault("expire", after_frames=1).on("watch").probability(0.7),
            fault("compact").on("watch").probability(0.5),
        ),
    ),
    (table.SILENT_WATCH, dead_connections),
    (table.SILENT_SERVER, stuck_server),
    (
        table.HALF_FRAMES,
        planned(
            fault("cut", after_frames=1).on("watch").probability(0.4),
            fault("cut", after_frames=2, end="clean").on("watch").probability(0.4),
            fault("drop", when="after", after_frames=1).on("watch").probability(0.4),
            fault("cut").on("list").probability(0.5),
        ),
    ),
    (
        table.REFUSALS,
        planned(
            fault(429, retry_after=5).probability(0.3),
            fault(503).probability(0.3),
            fault(500).probability(0.3),
        ),
    ),
    (
        table.STALE_LISTS,
        planned(
            fault("stale", behind=3).probability(0.7),
            fault("compact").on("watch").probability(0.5),
            fault("duplicate").on("watch").probability(0.5),
            fault("drop", when="after", after_frames=1).on("watch").probability(0.4),
        ),
    ),
    (
        table.EVERYTHING,
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


async def run(seed: int, inject_faults: InjectFaults) -> tuple[ExtenderEnvironment, list[Reply]]:
    """Inject faults and recover; return the environment, and the answers during the faults."""
    async with environment(seed) as env:
        clock, rng = env.cluster.clock, env.rng

        async def repeat(act: Callable[[], Awaitable[object]], most_seconds: float) -> None:
            while True:
                await clock.sleep(rng.uniform(1, most_seconds))
                await act()

        running = [
            asyncio.ensure_future(inject_faults(env)),
            asyncio.create_task(repeat(env.change, 20)),
            asyncio.create_task(repeat(env.call, 8)),
        ]
        try:
            await clock.advance(FAULT_SECONDS)
        finally:
            await cancel(running)
        during_faults = list(env.replies)
        env.transport.down = False
        env.injected = env.cluster.faults.injected
        env.cluster.faults.end()
        await clock.advance(RECOVERY_SECONDS)
        assert env.is_current(), "a change was lost"
        assert (await env.call()).status == 200
        assert env.transport.requests <= MOST_REQUESTS, env.transport.requests
        return env, during_faults


@pytest.mark.sampled
@pytest.mark.parametrize(("row", "inject_faults"), PLANS, ids=[row.fault for row, _ in PLANS])
async def test_no_answer_is_wrong_and_no_change_is_lost(
    row: Row, inject_faults: InjectFaults
) -> None:
    injected = []
    for seed in row.seeds:
        with noted(seed):
            env, _ = await run(seed, inject_faults)
        injected.append(env.injected)
    assert all(map(sum, zip(*injected, strict=True))), "a fault of the plan was never injected"


async def test_a_stuck_server_makes_the_state_stale_in_time() -> None:
    _, during_faults = await run(1, stuck_server)
    refused = [reply.at for reply in during_faults if reply.status == 503]
    assert refused
    assert all(reply.status == 503 for reply in during_faults if reply.at > max(refused[0], 200))


@pytest.mark.sampled
async def test_a_wrong_wall_clock_changes_no_answer_and_no_time_of_answer() -> None:
    for seed in CLOCK_SKEW.seeds:
        right, _ = await run(seed, outages)
        skewed, _ = await run(seed, skewed_outages)
        assert right.replies == skewed.replies, f"seed {seed}"
        assert right.transport.requests == skewed.transport.requests, f"seed {seed}"
