"""A controller and a fakeapi as processes, and their costs."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp
import orjson

from tests.bench.servers.processes import processor_seconds, reprieve
from tests.builders import Document
from tests.conformance.clusters.controller_processes import Controllers, running
from tests.conformance.objects import NAMESPACE

SETS_PATH: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"
PODS_PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_JSON: Final = {"Content-Type": "application/json"}
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_LONGEST_LINE: Final = 2**20


@dataclass(slots=True)
class Costs:
    """Seconds, or MiB, of each round by name."""

    rounds: dict[str, list[float]] = field(default_factory=dict)

    def record(self, what: str, cost: float) -> None:
        """Add the cost of a round."""
        self.rounds.setdefault(what, []).append(cost)

    def least(self, what: str) -> float:
        """Return the best of the rounds: other processes of the machine only add to it."""
        return min(self.rounds[what])


@dataclass(frozen=True, slots=True)
class Bench:
    """The process IDs of a fakeapi and its controller, and a client."""

    http: aiohttp.ClientSession
    server: int
    controller: int

    @asynccontextmanager
    async def measured(self, costs: Costs, what: str) -> AsyncIterator[None]:
        """Record the costs of the block: ``WHAT wall``, ``WHAT controller``, ``WHAT server``."""
        pids = {"controller": self.controller, "server": self.server}
        before = {name: processor_seconds(pid) for name, pid in pids.items()}
        begun = time.perf_counter()
        yield
        costs.record(f"{what} wall", time.perf_counter() - begun)
        for name, pid in pids.items():
            costs.record(f"{what} {name}", processor_seconds(pid) - before[name])

    async def create(self, path: str, thing: Document) -> None:
        """Create an object."""
        async with self.http.post(path, data=orjson.dumps(thing), headers=_JSON) as answer:
            assert answer.status == 201, await answer.text()

    async def patch(self, path: str, change: Document) -> None:
        """Merge a change into an object."""
        async with self.http.patch(path, data=orjson.dumps(change), headers=_MERGE) as answer:
            assert answer.status == 200, await answer.text()

    async def until(self, holds: Callable[[Document], bool], count: int = 1) -> tuple[float, float]:
        """Return once a condition holds for so many ReplicaSets: the first and the last time."""
        seen: dict[str, float] = {}
        async with self.http.get(SETS_PATH, params={"watch": "true"}) as answer:
            async for line in answer.content:
                thing = orjson.loads(line)["object"]
                if holds(thing):
                    seen.setdefault(thing["metadata"]["name"], time.perf_counter())
                if len(seen) >= count:
                    break
        return min(seen.values()), max(seen.values())


@asynccontextmanager
async def bench(controllers: Controllers, objects: Iterable[Document]) -> AsyncIterator[Bench]:
    """Run a fakeapi that has loaded objects, and a controller, until the block ends."""
    with reprieve("fakeapi", "--port", "0", "--run", "none") as server:
        async with aiohttp.ClientSession(
            server.url, timeout=aiohttp.ClientTimeout(total=None), read_bufsize=_LONGEST_LINE
        ) as http:
            load = orjson.dumps(list(objects))
            async with http.post("/_fakeapi/load", data=load) as answer:
                assert answer.status == 200, await answer.text()
            async with running(controllers, server.url, "replicaset") as process:
                yield Bench(http, server.pid, process.pid)
