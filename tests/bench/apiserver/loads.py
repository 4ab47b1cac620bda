"""Client loads on an API server, and their durations: any server, by its URL.

All of it happens in a namespace of its own, which is left empty. Pods have 1.8 KB.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from tests.bench.apiserver.http_connection import MERGE, Address, Connection, RequestFailedError

NAMESPACE = "bench"
FILLER_BYTES = 280
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_SENT = re.compile(rb'"bench/sent":"([0-9]+)"')


@dataclass(frozen=True, slots=True)
class Timed:
    """The durations of a number of requests, in seconds; latencies are sorted."""

    count: int
    seconds: float
    latencies: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Requests in a second."""
        return self.count / self.seconds

    def quantile(self, share: float) -> float:
        """The latency that a share of the requests stayed under, in milliseconds."""
        index = min(len(self.latencies) - 1, int(len(self.latencies) * share))
        return self.latencies[index] * 1000


def pod(name: str) -> bytes:
    """Return a pod on no node, as JSON."""
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    metadata = {
        "name": name,
        "labels": {"app": "bench"},
        "annotations": {"bench/filler": "x" * FILLER_BYTES},
    }
    spec = {"containers": [container], "schedulerName": "nobody"}
    document = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}
    return json.dumps(document, separators=(",", ":")).encode()


@asynccontextmanager
async def connections(address: Address, count: int) -> AsyncIterator[list[Connection]]:
    """Open ``count`` connections for the time of the block."""
    async with AsyncExitStack() as stack:
        opened = [await address.connect() for _ in range(count)]
        for connection in opened:
            stack.callback(connection.close)
        yield opened


async def prepare(address: Address) -> None:
    """Make the namespace, unless it is there, and empty it."""
    async with connections(address, 1) as [connection]:
        body = json.dumps({"metadata": {"name": NAMESPACE}}).encode()
        try:
            await connection.ask("POST", "/api/v1/namespaces", body)
        except RequestFailedError as error:
            if "AlreadyExists" not in str(error):
                raise
        await connection.ask("DELETE", f"{PODS}?gracePeriodSeconds=0")


async def create(address: Address, prefix: str, count: int, clients: int) -> Timed:
    """Create ``count`` pods, ``clients`` at a time."""

    async def one(connection: Connection, index: int) -> None:
        await connection.ask("POST", PODS, pod(f"{prefix}-{index:06}"))

    return await _spread(address, count, clients, one)


async def patch(address: Address, name: str, count: int) -> Timed:
    """Patch one pod ``count`` times, one after the other."""

    async def one(connection: Connection, index: int) -> None:
        body = b'{"metadata":{"annotations":{"bench/turn":"%d"}}}' % index
        await connection.ask("PATCH", f"{PODS}/{name}", body, MERGE)

    return await _spread(address, count, 1, one)


async def list_all(address: Address, turns: int) -> tuple[Timed, int]:
    """List every pod ``turns`` times; gives the median's time, and the bytes of one list."""
    taken, size = [], 0
    async with connections(address, 1) as [connection]:
        for _ in range(turns):
            started = time.perf_counter()
            size = len(await connection.ask("GET", PODS))
            taken.append(time.perf_counter() - started)
    return Timed(1, statistics.median(taken), sorted(taken)), size


async def watch_patches(address: Address, watchers: int, patches: int, patchers: int) -> Timed:
    """Patch flat out under watchers; latencies are from a PATCH's sending to an event's arrival."""
    seen: list[float] = []
    async with connections(address, watchers + 1) as [asking, *watching]:
        version = json.loads(await asking.ask("GET", f"{PODS}?limit=1"))["metadata"]
        target = f"{PODS}?watch=1&resourceVersion={version['resourceVersion']}"
        async with asyncio.TaskGroup() as group:
            for connection in watching:
                group.create_task(follow(connection, target, patches, seen))
            patched = await _patch_flat_out(address, patches, patchers)
            ended = time.perf_counter()
        late = time.perf_counter() - ended
    return Timed(patches, patched.seconds + late, sorted(seen))


async def delete_all(address: Address) -> Timed:
    """Delete the whole collection with one request."""
    async with connections(address, 1) as [connection]:
        started = time.perf_counter()
        await connection.ask("DELETE", f"{PODS}?gracePeriodSeconds=0")
        seconds = time.perf_counter() - started
        left = json.loads(await connection.ask("GET", f"{PODS}?limit=1"))["items"]
    if left:
        raise RequestFailedError("deletecollection left pods behind")
    return Timed(1, seconds)


async def _patch_flat_out(address: Address, patches: int, patchers: int) -> Timed:
    async def one(connection: Connection, index: int) -> None:
        sent = str(time.perf_counter_ns()).encode()
        body = b'{"metadata":{"annotations":{"bench/sent":"' + sent + b'"}}}'
        await connection.ask("PATCH", f"{PODS}/many-{index % 100:06}", body, MERGE)

    return await _spread(address, patches, patchers, one)


async def follow(connection: Connection, target: str, count: int, seen: list[float]) -> None:
    """Read a watch until ``count`` events have come; notes how long each was under way."""
    tail = b""
    async for piece in connection.watch(target):
        now = time.perf_counter_ns()
        found = list(_SENT.finditer(tail + piece))
        tail = (tail + piece)[found[-1].end() if found else 0 :][-200:]
        seen += [(now - int(match[1])) / 1e9 for match in found]
        count -= len(found)
        if count <= 0:
            return
    raise RequestFailedError(f"the watch ended while {count} events were still to come")


async def _spread(
    address: Address, count: int, clients: int, one: Callable[[Connection, int], Awaitable[None]]
) -> Timed:
    numbers = iter(range(count))
    latencies: list[float] = []

    async def client(connection: Connection) -> None:
        for number in numbers:
            started = time.perf_counter()
            await one(connection, number)
            latencies.append(time.perf_counter() - started)

    async with connections(address, clients) as opened:
        begun = time.perf_counter()
        await asyncio.gather(*(client(connection) for connection in opened))
        seconds = time.perf_counter() - begun
    return Timed(count, seconds, sorted(latencies))
