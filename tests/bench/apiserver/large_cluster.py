"""Loads on a large cluster, a process of its own, which prints a line of JSON.

It lists all pods, in pages or whole; watches them with many clients while pods are patched at a
steady rate; or creates pods at a steady rate, until a scheduler and kubelets have them running.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Final
from urllib.parse import quote

from tests.bench.apiserver.http_connection import MERGE, Address, Connection
from tests.bench.apiserver.loads import connections, follow

PODS: Final = "/api/v1/pods"
WATCHERS: Final = 20
EVENTS_PER_SECOND: Final = 1_000
EVENTS: Final = 10_000
_PATCHERS: Final = 10
_PAGE: Final = 500
CREATED: Final = 6_000
CREATED_PER_SECOND: Final = 300
_INCOMING: Final = "bench=incoming"
_RUNNING: Final = re.compile(rb'"name":"(incoming-[0-9]+)"')


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
    begun: dict[str, float] = {}
    async with connections(address, _PATCHERS + 1) as [watching, *creating]:
        version = json.loads(await watching.ask("GET", f"{PODS}?limit=1"))["metadata"]
        target = f"{PODS}?watch=1&labelSelector={_INCOMING}&resourceVersion="
        running = asyncio.create_task(
            _wait_running(watching, target + version["resourceVersion"], begun)
        )
        started, numbers = time.perf_counter(), iter(range(CREATED))
        async with asyncio.TaskGroup() as group:
            for connection in creating:
                group.create_task(_create(connection, started, numbers, begun))
        latencies = sorted(await running)
        seconds = time.perf_counter() - started
    return {
        "created": CREATED,
        "rate": CREATED / seconds,
        "p50": latencies[len(latencies) // 2],
        "p99": latencies[len(latencies) * 99 // 100],
    }


async def _create(
    connection: Connection, started: float, numbers: Iterator[int], begun: dict[str, float]
) -> None:
    for number in numbers:
        await asyncio.sleep(started + number / CREATED_PER_SECOND - time.perf_counter())
        name = f"incoming-{number:06}"
        begun[name] = time.perf_counter()
        await connection.ask("POST", "/api/v1/namespaces/default/pods", _incoming(name))


async def _wait_running(
    connection: Connection, target: str, begun: dict[str, float]
) -> list[float]:
    """Return the seconds from each pod's creation until its phase is Running."""
    running: dict[str, float] = {}
    rest = b""
    async for piece in connection.watch(target):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            found = _RUNNING.search(line)
            if found is not None and b'"phase":"Running"' in line:
                name = found[1].decode()
                running.setdefault(name, time.perf_counter() - begun[name])
        if len(running) == CREATED:
            break
    return list(running.values())


def _incoming(name: str) -> bytes:
    requests = {"cpu": "10m", "memory": "16Mi"}
    container = {"name": "c", "image": "registry.example/c:1", "resources": {"requests": requests}}
    key, _, value = _INCOMING.partition("=")
    metadata = {"name": name, "labels": {key: value}}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}
    return json.dumps({**pod, "spec": {"containers": [container]}}).encode()


async def _patch(
    connection: Connection, begun: float, numbers: Iterator[int], names: list[str]
) -> None:
    for number in numbers:
        await asyncio.sleep(begun + number / EVENTS_PER_SECOND - time.perf_counter())
        body = b'{"metadata":{"annotations":{"bench/sent":"%d"}}}' % time.perf_counter_ns()
        pod = f"/api/v1/namespaces/default/pods/{names[number % len(names)]}"
        await connection.ask("PATCH", pod, body, MERGE)


def _continue_token(page: bytes) -> str:
    token: str = json.loads(page[: page.index(b',"items":')] + b"}")["metadata"].get("continue", "")
    return token


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True, metavar="URL")
    parser.add_argument("--what", choices=("pages", "whole", "watch", "create"), required=True)
    asked = parser.parse_args()
    loads: dict[str, Callable[[Address], Awaitable[dict[str, float]]]] = {
        "pages": pages,
        "whole": whole,
        "watch": watch,
        "create": create,
    }
    found = asyncio.run(loads[asked.what](Address(asked.server)))
    sys.stdout.write(json.dumps(found) + "\n")
