"""The longest pause of the extender by a garbage collection, under load.

Calls follow each other, while a hundred pods a second change. The extender reports its pauses, from
its start on, in a histogram: the result is the upper bound of the last bucket with a pause.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from typing import Final

import aiohttp

from tests.bench.budgets import Figure
from tests.bench.clusters import PREFIX, encoded, preemptor
from tests.bench.servers.processes import READY_SECONDS, Server, loaded, reprieve
from tests.bench.timing import Effort, milliseconds
from tests.commands import wait_ready
from tests.load.churn import change_pods

LARGE: Final = 15_000
"""The number of nodes of the cluster that only a full run measures."""
_LOADED_SECONDS: Final = 600
_NAMES: Final = 5_000
_BUCKET: Final = re.compile(r'^python_gc_pause_seconds_bucket\{le="(\S+)"\} (\S+)$', re.MULTILINE)


def measure(effort: Effort) -> dict[str, Figure]:
    """Measure the large cluster for ten minutes, if the run measures clusters of its size."""
    return asyncio.run(_large()) if LARGE in effort.nodes else {}


async def _large() -> dict[str, Figure]:
    with (
        loaded(LARGE, 30, more=[preemptor("plain", LARGE)]) as api,
        reprieve("serve", "--port", "0", "--search", "cluster", "--server", api.url) as extender,
    ):
        await wait_ready(extender.url, READY_SECONDS)
        return await longest_pause(extender, api, LARGE, _LOADED_SECONDS)


async def longest_pause(
    extender: Server, api: Server, nodes: int, seconds: float
) -> dict[str, Figure]:
    """Return the longest pause of a synced extender, after so many seconds of load."""
    stop, timeout = asyncio.Event(), aiohttp.ClientTimeout(total=60)
    async with (
        aiohttp.ClientSession(api.url, timeout=timeout) as writing,
        aiohttp.ClientSession(extender.url, timeout=timeout) as asking,
        asyncio.TaskGroup() as group,
    ):
        changing = group.create_task(change_pods(writing, stop))
        calls = await _call(asking, nodes, time.monotonic() + seconds)
        stop.set()
        changes = await changing
        async with asking.get("/metrics") as response:
            buckets = _BUCKET.findall(await response.text())
    longest = float(next(bound for bound, count in buckets if count == buckets[-1][1]))
    what = f"longest pause by a garbage collection, {nodes:,} nodes with 30 pods"
    shown = f"≤ {milliseconds(longest)}; {calls:,} calls, {changes:,} changes"
    return {f"longest-pause-{nodes}": Figure(what, shown, longest)}


async def _call(session: aiohttp.ClientSession, nodes: int, until: float) -> int:
    """Send calls of both verbs in turns; return how many were answered."""
    victims = {"Pods": [{"UID": f"uid-p-00000-{n:02}"} for n in range(6)], "NumPDBViolations": 0}
    pod, calls = preemptor("plain", nodes), 0
    asked: Mapping[str, bytes] = {
        "/preempt": encoded({"Pod": pod, "NodeNameToMetaVictims": {f"{PREFIX}00000": victims}}),
        "/filter": encoded({"Pod": pod, "NodeNames": [f"{PREFIX}{n:05}" for n in range(_NAMES)]}),
    }
    while time.monotonic() < until:
        for verb, body in asked.items():
            async with session.post(verb, data=body) as response:
                await response.read()
                calls += response.status == 200  # on a busy machine, some are late
    return calls
