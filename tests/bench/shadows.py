"""What shadow policies cost the answers: their p99 with two of them, by that without, in turns.

Two extenders follow the same cluster of 5,000 nodes; one has shadow policies. Each gets the same
calls in turns, block by block: in *bursts*, as kube-scheduler works off its queue, one call after
another and then a pause, and *at random*, 20 a second on average, of which some meet a decision.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import aiohttp

from tests.bench.budgets import Figure, untimed
from tests.bench.clusters import cluster, preemptor, snapshot_of
from tests.bench.extender import NODES, preempt_body
from tests.bench.servers.processes import READY_SECONDS, Server, loaded, reprieve
from tests.bench.timing import Latency, latency, milliseconds
from tests.commands import ROOT, wait_ready

_POLICIES: Final = ("kube-scheduler", str(ROOT / "deploy/policies/spare-long-training-jobs.yaml"))
_OFFERED: Final = 100
_BURST: Final = 20
_BURST_PAUSE_SECONDS: Final = 1.0
_MEAN_GAP_SECONDS: Final = 0.05
_BLOCK: Final = 100
"""The calls that an extender gets before it is the other one's turn."""


@dataclass(frozen=True, slots=True)
class Calls:
    """How many calls each extender gets in a pattern."""

    each: int


FULL: Final = Calls(2_000)
QUICK: Final = Calls(600)

Gaps = Callable[[], Iterator[float]]
"""Returns the seconds to wait before each call."""


def measure(calls: Calls) -> dict[str, Figure]:
    """Measure both patterns."""
    return asyncio.run(_measured(calls))


async def _measured(calls: Calls) -> dict[str, Figure]:
    with TemporaryDirectory() as directory:
        config = Path(directory) / "reprieve.yaml"
        config.write_text(f"search: cluster\nshadow: [{', '.join(_POLICIES)}]\n")
        plain = ("serve", "--port", "0", "--search", "cluster")
        with (
            loaded(NODES, 30, more=[preemptor("plain", NODES)]) as api,
            reprieve(*plain, "--server", api.url) as without,
            reprieve(*plain, "--config", str(config), "--server", api.url) as shadowed,
        ):
            for server in (without, shadowed):
                await wait_ready(server.url, READY_SECONDS)
            figures: dict[str, Figure] = {}
            body = preempt_body(snapshot_of(cluster(NODES)), _OFFERED)
            for name, gaps in (("bursts", _bursts), ("random", _random)):
                figures |= _compared(name, *await _in_turns(without, shadowed, body, gaps, calls))
            figures |= await _decided(shadowed)
            figures |= _memory(without, shadowed)
    return figures


def _bursts() -> Iterator[float]:
    while True:
        yield _BURST_PAUSE_SECONDS
        yield from [0.0] * (_BURST - 1)


def _random() -> Iterator[float]:
    rng = random.Random(7)
    while True:
        yield rng.expovariate(1 / _MEAN_GAP_SECONDS)


async def _in_turns(
    without: Server, shadowed: Server, body: bytes, gaps: Gaps, calls: Calls
) -> tuple[Latency, Latency]:
    taken: dict[str, list[float]] = {without.url: [], shadowed.url: []}
    waits = {url: gaps() for url in taken}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
        for url in taken:
            await _post(session, url, body)
        while len(taken[shadowed.url]) < calls.each:
            for url, seconds in taken.items():
                for _ in range(_BLOCK):
                    await asyncio.sleep(next(waits[url]))
                    seconds.append(await _post(session, url, body))
    return latency(taken[without.url]), latency(taken[shadowed.url])


async def _post(session: aiohttp.ClientSession, url: str, body: bytes) -> float:
    started = time.perf_counter()
    async with session.post(f"{url}/preempt", data=body) as response:
        text = await response.read()
        if response.status != 200:
            raise RuntimeError(f"{url} answered {response.status}: {text[:200]!r}")
    return time.perf_counter() - started


def _compared(name: str, without: Latency, shadowed: Latency) -> dict[str, Figure]:
    what = f"HTTP preempt, {NODES:,} nodes, calls {name}, with two shadow policies by without"
    figures = {}
    for suffix, found, bare in (
        ("p50", shadowed.p50, without.p50),
        ("p99", shadowed.p99, without.p99),
    ):
        ratio = found / bare
        shown = f"{ratio:.2f}; {milliseconds(found)} by {milliseconds(bare)} of {without.rounds}"
        figures[f"shadow-{name}-{suffix}"] = untimed(f"{what}: {suffix}", shown, ratio)
    return figures


def _memory(without: Server, shadowed: Server) -> dict[str, Figure]:
    more = (shadowed.resident_bytes() - without.resident_bytes()) / 2**20
    what = f"two shadow policies, {NODES:,} nodes and 150,000 pods: resident memory"
    return {"shadow-memory": untimed(what, f"{more:,.0f} MiB", more)}


async def _decided(shadowed: Server) -> dict[str, Figure]:
    """Return how many decisions of shadow policies were made, by those that were not."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{shadowed.url}/metrics") as response,
    ):
        text = await response.text()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if "reprieve_shadow_" in line)
    dropped = float(values["reprieve_shadow_decisions_dropped_total"])
    made = sum(float(value) for name, value in values.items() if "shadow_decisions_total{" in name)
    share = dropped / (made + dropped)
    what = "decisions of shadow policies that were dropped in these calls"
    return {"shadow-dropped": untimed(what, f"{share:.0%} of {made + dropped:,.0f}", share)}
