"""Latency of the extender's verbs beside an echo of the same bytes, measured in turns."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import aiohttp

from tests.bench.processes import Server

WARM_UP = 5


@dataclass(frozen=True, slots=True)
class Latency:
    """Median and 99th percentile of one server, in milliseconds."""

    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Beside:
    """The extender's latency and the echo's, from the same run."""

    extender: Latency
    echo: Latency


async def beside_echo(
    extender: Server, verb: str, body: bytes, echo: Server, rounds: int
) -> Beside:
    """Send ``body`` to both in turns, ``rounds`` times after a warm-up."""
    urls = (f"{extender.url}/{verb}", echo.url)
    times: tuple[list[float], list[float]] = ([], [])
    async with aiohttp.ClientSession() as session:
        for turn in range(WARM_UP + rounds):
            for url, taken in zip(urls, times, strict=True):
                seconds = await _post(session, url, body)
                if turn >= WARM_UP:
                    taken.append(seconds)
    return Beside(_latency(times[0]), _latency(times[1]))


async def wait_ready(server: Server) -> float:
    """Ask /readyz until it says yes; give the seconds that took."""
    started = time.perf_counter()
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{server.url}/readyz") as response:
                if response.status == 200:
                    return time.perf_counter() - started


async def _post(session: aiohttp.ClientSession, url: str, body: bytes) -> float:
    started = time.perf_counter()
    async with session.post(url, data=body) as response:
        text = await response.read()
        if response.status != 200:
            raise RuntimeError(f"{url} answered {response.status}: {text[:200]!r}")
    return time.perf_counter() - started


def _latency(seconds: list[float]) -> Latency:
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return Latency(statistics.median(ordered) * 1000, p99 * 1000)
