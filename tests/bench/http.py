"""Latency of the extender's verbs beside an echo of the same bytes, measured in turns."""

from __future__ import annotations

import time
from dataclasses import dataclass

import aiohttp

from tests.bench.servers.processes import Server
from tests.bench.timing import Effort, Latency, is_enough, latency

WARM_UP = 2


@dataclass(frozen=True, slots=True)
class Beside:
    """The extender's latency and the echo's, from the same run."""

    extender: Latency
    echo: Latency


async def beside_echo(
    extender: Server, verb: str, body: bytes, echo: Server, effort: Effort
) -> Beside:
    """Send ``body`` to both in turns, after a warm-up."""
    return await in_turns(f"{extender.url}/{verb}", echo.url, body, effort)


async def in_turns(url: str, echo: str, body: bytes, effort: Effort) -> Beside:
    """Send ``body`` to two URLs in turns, after a warm-up."""
    urls = (url, echo)
    times: tuple[list[float], list[float]] = ([], [])
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
        for _ in range(WARM_UP):
            for url in urls:
                await _post(session, url, body)
        begun = time.perf_counter()
        while not is_enough(effort, len(times[0]), time.perf_counter() - begun):
            for url, taken in zip(urls, times, strict=True):
                taken.append(await _post(session, url, body))
    return Beside(latency(times[0]), latency(times[1]))


async def _post(session: aiohttp.ClientSession, url: str, body: bytes) -> float:
    started = time.perf_counter()
    async with session.post(url, data=body) as response:
        text = await response.read()
        if response.status != 200:
            raise RuntimeError(f"{url} answered {response.status}: {text[:200]!r}")
    return time.perf_counter() - started
