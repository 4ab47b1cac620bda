"""Loads on a large cluster, a process of its own, which prints a line of JSON.

It lists all pods, in pages or whole; watches them with many clients while pods are patched at a
steady rate; or creates pods at a steady rate, until a scheduler and kubelets have them running.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from tests.bench.apiserver.http_connection import MERGE, Address, Connection
from tests.bench.apiserver.loads import connections, follow

PODS: Final = "/api/v1/pods"
WATCHERS: Final = 20
EVENTS_PER_SECOND: Final = 1_000
EVENTS: Final = 5_000
_PATCHERS: Final = 10
_PAGE: Final = 500
CREATED: Final = 3_000
CREATED_PER_SECOND: Final = 300
_WARMING: Final = 100
_DEFAULT: Final = "/api/v1/namespaces/default/pods"


async def pages(address: Address) -> dict[str, float]:
    """List all pods in pages; return the number of pages, and the seconds."""
    async with connections(address, 1) as [connection]:
        begun, count, token = time.perf_counter(), 0, ""
        while token or not count:
            target = f"{PODS}?limit={_PAGE}&continue={quote(token)}"
            token = _continue_token(await connection.ask("GET", target))
            count += 1
        return {"pages": count, "seconds": time.perf_counter() - begun}


async def whole(address: Address) -> dict[str, float]:
    """List all pods at once; return the bytes and the seconds."""
    async with connections(address, 1) as [connection]:
        begun = time.perf_counter()
        size = len(await connection.ask("GET", PODS))
        return {"bytes": size, "seconds": time.perf_counter() - begun}


async def watch(address: Address) -> dict[str, float]:
    """Patch pods at a steady rate under watchers; return the rate and latencies of events."""
    seen: list[float] = []
    async with connections(address, WATCHERS + _PATCHERS) as opened:
        asking, watching = opened[:_PATCHERS], opened[_PATCHERS:]
        listed = json.loads(await asking[0].ask("GET", f"{PODS}?limit={_PAGE}"))
        names = [each["metadata"]["name"] for each in listed["items"]]
        target = f"{PODS}?watch=1&resourceVersion={listed['metadata']['resourceVersion']}"
        async with asyncio.TaskGroup() as group:
            for connection in watching:
                group.create_task(follow(connection, target, EVENTS, seen))
            begun, numbers = time.perf_counter(), iter(range(EVENTS))
            async with asyncio.TaskGroup() as patching:
                for connection in asking:
                    patching.create_task(_patch(connection, begun, numbers, names))
            seconds = time.perf_counter() - begun
    seen.sort()
    share = {f"p{rank}": seen[len(seen) * rank // 100] for rank in (50, 99)}
    return {"rate": EVENTS / seconds, **share}


async def create(address: Address) -> dict[str, float]:
    """Create pods at a steady rate; return how many run in a second, and how soon."""
    return await _Creation("incoming", CREATED).run(address)


async def warm(address: Address) -> dict[str, float]:
    """Create a few pods; when they run, the scheduler has listed the cluster."""
    return await _Creation("warm", _WARMING).run(address)


@dataclass(slots=True)
class _Creation:
    """The creation of ``count`` pods: when each was begun, and the seconds until it runs."""

    prefix: str
    count: int
    begun: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)

    async def run(self, address: Address) -> dict[str, float]:
        async with connections(address, _PATCHERS + 1) as [watching, *creating]:
            listed = json.loads(await watching.ask("GET", f"{PODS}?limit=1"))
            selected = f"labelSelector=bench={self.prefix}"
            version = listed["metadata"]["resourceVersion"]
            target = f"{PODS}?watch=1&{selected}&resourceVersion={version}"
            started, numbers = time.perf_counter(), iter(range(self.count))
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow(watching, target))
                for connection in creating:
                    group.create_task(self._create(connection, started, numbers))
            seconds = time.perf_counter() - started
        waited = sorted(self.running.values())
        share = {f"p{rank}": waited[len(waited) * rank // 100] for rank in (50, 99)}
        return {"created": self.count, "rate": self.count / seconds, **share}

    async def _create(self, connection: Connection, started: float, numbers: Iterator[int]) -> None:
        for number in numbers:
            await asyncio.sleep(started + number / CREATED_PER_SECOND - time.perf_counter())
            name = f"{self.prefix}-{number:06}"
            self.begun[name] = time.perf_counter()
            await connection.ask("POST", _DEFAULT, _incoming(name, self.prefix))

    async def _follow(self, connection: Connection, target: str) -> None:
        rest = b""
        async for piece in connection.watch(target):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                name = line.partition(b'"name":"')[2].partition(b'"')[0].decode()
                if b'"phase":"Running"' in line and name not in self.running:
                    self.running[name] = time.perf_counter() - self.begun[name]
            if len(self.running) == self.count:
                return


def _incoming(name: str, group: str) -> bytes:
    requests = {"cpu": "10m", "memory": "16Mi"}
    container = {"name": "c", "image": "registry.example/c:1", "resources": {"requests": requests}}
    metadata = {"name": name, "labels": {"bench": group}}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}
    return json.dumps({**pod, "spec": {"containers": [container]}}).encode()


async def _patch(
    connection: Connection, begun: float, numbers: Iterator[int], names: list[str]
) -> None:
    for number in numbers:
        await asyncio.sleep(begun + number / EVENTS_PER_SECOND - time.perf_counter())
        body = b'{"metadata":{"annotations":{"bench/sent":"%d"}}}' % time.perf_counter_ns()
        pod = f"{_DEFAULT}/{names[number % len(names)]}"
        await connection.ask("PATCH", pod, body, MERGE)


def _continue_token(page: bytes) -> str:
    token: str = json.loads(page[: page.index(b',"items":')] + b"}")["metadata"].get("continue", "")
    return token


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True, metavar="URL")
    loads: dict[str, Callable[[Address], Coroutine[None, None, dict[str, float]]]] = {
        "pages": pages,
        "whole": whole,
        "watch": watch,
        "create": create,
        "warm": warm,
    }
    parser.add_argument("--what", choices=loads, required=True)
    asked = parser.parse_args()
    found = asyncio.run(loads[asked.what](Address(asked.server)))
    sys.stdout.write(json.dumps(found) + "\n")
