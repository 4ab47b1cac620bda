"""What fakeapi costs: its start, its memory, and everything that the load client does to it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench.budgets import Figure
from tests.bench.clusters import cluster, encoded
from tests.bench.processes import Server, reprieve

_MIB = 2**20
_EVERYDAY = {
    "create-1": "creates, 1 client",
    "create-50": "creates, 50 clients",
    "list": "list of 5,500 pods, JSON",
    "patches": "20 watchers, 2,000 patches flat out",
    "event-latency": "PATCH sent to event seen, meanwhile",
    "deletecollection": "deletecollection of 5,500 pods",
}
_IN_PROCESS = """
import asyncio, statistics, time
from fakeapi.harness import FakeCluster

async def start():
    begun = time.perf_counter()
    async with FakeCluster():
        return time.perf_counter() - begun

first = asyncio.run(start())
print(first, statistics.median(asyncio.run(start()) for _ in range(15)))
"""


def measure() -> dict[str, Figure]:
    """Run every benchmark."""
    return {**_start(), **_everyday(), **_writes(), **_many()}


def _start() -> dict[str, Figure]:
    begun = time.perf_counter()
    with reprieve("fakeapi", "--port", "0") as server:
        ready = time.perf_counter() - begun
        idle = server.resident_bytes() / _MIB
    answer = subprocess.run(
        [sys.executable, "-c", _IN_PROCESS], capture_output=True, text=True, check=True
    )
    first, median = map(float, answer.stdout.split())
    return {
        "ready": Figure("exec to ready", f"{ready:.2f} s", ready),
        "ready-first": Figure("in-process, the first after import", f"{first * 1e3:.0f} ms", first),
        "ready-next": Figure("in-process, each further one", f"{median * 1e3:.1f} ms", median),
        "idle-memory": Figure("idle memory", f"{idle:.0f} MiB", idle, timed=False),
    }


def _everyday() -> dict[str, Figure]:
    with reprieve("fakeapi", "--port", "0") as server:
        told = ask(server.url, "everyday")
    return {name: _figure(what, told[name]) for name, what in _EVERYDAY.items()}


def everyday(url: str, token: str) -> dict[str, Figure]:
    """Measure what the load client does to any server."""
    told = ask(url, "everyday", token)
    return {name: _figure(what, told[name]) for name, what in _EVERYDAY.items()}


def _writes() -> dict[str, Figure]:
    figures = {}
    costs: dict[str, list[float]] = {"create": [], "patch": []}
    for pods in (1_000, 100_000):
        with _loaded(1, pods) as (server, _):
            told = ask(server.url, "writes")
        for verb, seconds in costs.items():
            seconds.append(told[verb]["cost"])
    for verb, (small, large) in costs.items():
        shown = f"{small * 1e3:.2f} ms, {large * 1e3:.2f} ms"
        what = f"{verb}, p50, among 1,000 and among 100,000 pods"
        figures[f"flat-{verb}"] = Figure(what, shown, large / small, timed=False)
    return figures


def _many() -> dict[str, Figure]:
    with _loaded(5_000, 30) as (server, seconds):
        resident = server.resident_bytes() / _MIB
    what = "150,000 pods and 5,000 nodes"
    return {
        "load-many": Figure(f"{what}: exec to loaded", f"{seconds:.1f} s", seconds),
        "many-memory": Figure(f"{what}: memory", f"{resident:,.0f} MiB", resident, timed=False),
    }


@contextmanager
def _loaded(nodes: int, pods_per_node: int) -> Iterator[tuple[Server, float]]:
    """Run a server that has loaded a file; gives the seconds from exec to ready."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "cluster.jsonl"
        path.write_bytes(b"\n".join(encoded(each) for each in cluster(nodes, pods_per_node)))
        begun = time.perf_counter()
        with reprieve("fakeapi", "--port", "0", "--load", str(path)) as server:
            yield server, time.perf_counter() - begun


def ask(url: str, what: str, token: str = "") -> dict[str, Any]:
    """Run the load client and give what it tells."""
    client = [sys.executable, "-m", "tests.bench.apiserver", "--server", url, "--what", what]
    if token:
        client += ["--token", token]
    answer = subprocess.run(client, stdout=subprocess.PIPE, text=True, check=True)
    told: dict[str, Any] = json.loads(answer.stdout)
    return told


def _figure(what: str, told: dict[str, Any]) -> Figure:
    return Figure(what, told["shown"], told["cost"])
