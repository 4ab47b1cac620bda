"""The cost of fakeapi: its start, its memory, and all loads of the load client."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.bench import large_cluster
from tests.bench.apiserver import admission, custom
from tests.bench.budgets import Figure, untimed
from tests.bench.servers.processes import loaded, reprieve

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
from fakeapi.testing.fake_cluster import FakeCluster

async def start():
    begun = time.perf_counter()
    async with FakeCluster():
        return time.perf_counter() - begun

first = asyncio.run(start())
print(first, statistics.median(asyncio.run(start()) for _ in range(15)))
"""

_FIXTURES = """
import statistics, time
begun = time.perf_counter()
from fakeapi import FakeCluster

def start_and_stop():
    begun = time.perf_counter()
    with FakeCluster.in_thread():
        pass
    return time.perf_counter() - begun

start_and_stop()
first = time.perf_counter() - begun
print(first, statistics.median(start_and_stop() for _ in range(15)))
"""


def measure(nodes: tuple[int, ...]) -> dict[str, Figure]:
    """Run every benchmark; ``nodes`` are the sizes of large clusters."""
    parts: list[Callable[[], dict[str, Figure]]]
    parts = [_start, custom.measure, _everyday, _writes, _many, admission.measure, _virtual]
    parts += [partial(large_cluster.measure, each) for each in nodes]
    return {name: figure for part in parts for name, figure in part().items()}


def _virtual() -> dict[str, Figure]:
    """Measure worlds without sockets: idle, with a hundred nodes, with 5,000, and a fork."""
    answer = subprocess.run(
        [sys.executable, "-m", "tests.bench.apiserver.virtual"],
        capture_output=True,
        text=True,
        check=True,
    )
    results = json.loads(answer.stdout)
    idle, nodes, fork = results["idle"], results["nodes"], results["fork"]
    kept, watched = results["kept"], results["watched"]
    pace = f"{idle:.2f} s, {3600 / idle:,.0f} x real time"
    return {
        "idle-hour": Figure("virtual: an idle hour, all parts running", pace, idle),
        "nodes-hour": Figure("virtual: an hour of 100 nodes", f"{nodes:.1f} s", nodes),
        "kept": Figure("virtual: a minute of 5,000 kubelets", _pace(kept), kept),
        "watched": Figure("the same, all parts running", _pace(watched), watched),
        "fork": Figure("fork of 50,000 objects", f"{fork * 1e3:.2f} ms", fork),
    }


def _pace(minute: float) -> str:
    return f"{minute:.2f} s, {60 / minute:.0f} x real time"


def _start() -> dict[str, Figure]:
    with reprieve("fakeapi", "--port", "0") as server:
        ready = server.started_in
        idle = server.resident_bytes() / _MIB
    (first, median), (fixture, further) = _run(_IN_PROCESS), _run(_FIXTURES)
    return {
        "ready": Figure("exec to ready", f"{ready:.2f} s", ready),
        "ready-first": Figure("in-process, the first after import", f"{first * 1e3:.0f} ms", first),
        "ready-next": Figure("in-process, each further one", f"{median * 1e3:.1f} ms", median),
        "fixture-first": Figure("the first fixture, with imports", f"{fixture:.2f} s", fixture),
        "fixture-next": Figure("each further fixture", f"{further * 1e3:.1f} ms", further),
        "idle-memory": untimed("idle memory", f"{idle:.0f} MiB", idle),
    }


def _run(script: str) -> tuple[float, float]:
    """Return the two times that a script prints."""
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    first, further = map(float, answer.stdout.split())
    return first, further


def _everyday() -> dict[str, Figure]:
    with reprieve("fakeapi", "--port", "0") as server:
        results = run_client(server.url, "everyday")
    return {name: _figure(what, results[name]) for name, what in _EVERYDAY.items()}


def everyday(url: str, token: str) -> dict[str, Figure]:
    """Measure the loads of the load client on any server."""
    results = run_client(url, "everyday", token)
    return {name: _figure(what, results[name]) for name, what in _EVERYDAY.items()}


def _writes() -> dict[str, Figure]:
    figures = {}
    costs: dict[str, list[float]] = {"create": [], "patch": []}
    for pods in (1_000, 100_000):
        with loaded(1, pods) as server:
            results = run_client(server.url, "writes")
        for verb, seconds in costs.items():
            seconds.append(results[verb]["cost"])
    for verb, (small, large) in costs.items():
        shown = f"{small * 1e3:.2f} ms, {large * 1e3:.2f} ms"
        what = f"{verb}, p50, among 1,000 and among 100,000 pods"
        figures[f"flat-{verb}"] = untimed(what, shown, large / small)
    return figures


def _many() -> dict[str, Figure]:
    with loaded(5_000, 30) as server:
        seconds, resident = server.started_in, server.resident_bytes() / _MIB
    what = "150,000 pods and 5,000 nodes"
    return {
        "load-many": Figure(f"{what}: exec to loaded", f"{seconds:.1f} s", seconds),
        "many-memory": untimed(f"{what}: memory", f"{resident:,.0f} MiB", resident),
    }


def run_client(url: str, what: str, token: str = "") -> dict[str, Any]:
    """Run the load client and return its output."""
    client = [sys.executable, "-m", "tests.bench.apiserver", "--server", url, "--what", what]
    if token:
        client += ["--token", token]
    answer = subprocess.run(client, stdout=subprocess.PIPE, text=True, check=True)
    results: dict[str, Any] = json.loads(answer.stdout)
    return results


def _figure(what: str, results: dict[str, Any]) -> Figure:
    return Figure(what, results["shown"], results["cost"])
