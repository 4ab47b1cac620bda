"""A large cluster in fakeapi: its load, its heartbeats, its lists and watches, and its scheduling.

All nodes are simulated in real time, and all of their pods run. A real kube-scheduler assigns the
pods that are created in the end. The load clients are processes of their own; meanwhile another
client measures how long a small request waits.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.bench.apiserver.http_connection import Address
from tests.bench.apiserver.large_cluster import CREATED_PER_SECOND, EVENTS_PER_SECOND, WATCHERS
from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.bench.servers.processes import Server, processor_seconds, reprieve
from tests.bench.servers.running_nodes import running_nodes
from tests.bench.timing import milliseconds
from tests.builders import encoded, pod_request
from tests.conformance.build import program
from tests.conformance.scheduling.kube_scheduler import configuration, kube_scheduler
from tests.e2e.scenario_runner import write_kubeconfig

PODS_PER_NODE: Final = 20
RUN: Final = "gc,namespaces,resourcequota,kubelet"
SCRIPT: Final = '{events: false, pods: [{match: {names: ["*"]}, start: 0s}]}'
_MIB: Final = 2**20
_SETTLING_SECONDS: Final = 20.0
"""By when each node has renewed its lease twice: what is measured is what lasts."""
_HEARTBEATS_SECONDS: Final = 20.0
_LAST: Final = "last-in-the-queue"
_DEFAULT: Final = "/api/v1/namespaces/default"
_PROBE_SECONDS: Final = 0.003


@dataclass(frozen=True, slots=True)
class Probe:
    """The longest and the 99th percentile of small requests, in seconds, during a load."""

    found: dict[str, float]
    p99: float
    most: float


def measure(nodes: int) -> dict[str, Figure]:
    """Measure a cluster of so many nodes."""
    with _large_cluster(nodes) as server:
        return dict(asyncio.run(_measure(server, nodes)))


@contextmanager
def _large_cluster(nodes: int) -> Iterator[Server]:
    with TemporaryDirectory() as name:
        script, cluster = Path(name) / "kubelets.yaml", Path(name) / "cluster.jsonl"
        script.write_text(SCRIPT)
        with cluster.open("wb") as file:
            file.writelines(line + b"\n" for line in running_nodes(nodes, PODS_PER_NODE))
        files = ("--load", str(cluster), "--kubelet", str(script))
        with reprieve("fakeapi", "--port", "0", "--run", RUN, *files) as server:
            yield server


async def _measure(server: Server, nodes: int) -> list[tuple[str, Figure]]:
    size = f"{nodes:,} nodes, {nodes * PODS_PER_NODE:,} pods"
    found = [("load", Figure("exec to loaded", f"{server.started_in:.1f} s", server.started_in))]
    begun = time.perf_counter()
    await _wait_started(server)
    taken_over = time.perf_counter() - begun
    found += [
        ("started", Figure("loaded to all kubelets running", f"{taken_over:.1f} s", taken_over))
    ]
    cores, resident = await _heartbeats(server)
    found += [
        ("cores", untimed("processor time of heartbeats", f"{cores:.2f} of a core", cores)),
        ("memory", untimed("memory", f"{resident:,.0f} MiB", resident)),
        *_probed(
            "pages",
            "a small request, while all pods are listed in pages",
            await _probe(server, "pages"),
        ),
        *_probed("whole", "the same, while all are listed at once", await _probe(server, "whole")),
        *_watched((await _probe(server, "watch")).found),
        *await _scheduled(server),
    ]
    return [(f"large-{nodes}-{name}", _of(size, figure)) for name, figure in found]


def _of(size: str, figure: Figure) -> Figure:
    return Figure(f"{size}: {figure.what}", figure.shown, figure.cost, figure.timed)


async def _wait_started(server: Server) -> None:
    """Return when a new pod runs, which the kubelets start after all others."""
    connection = await Address(server.url).connect()
    body = encoded(pod_request(_LAST, nodeName="node-00000"))
    await connection.ask("POST", f"{_DEFAULT}/pods", body)
    pod = f"{_DEFAULT}/pods/{_LAST}"
    while b'"phase":"Running"' not in await connection.ask("GET", pod):  # noqa: ASYNC110 - a process
        await asyncio.sleep(0.1)
    connection.close()


async def _heartbeats(server: Server) -> tuple[float, float]:
    """Return the share of a core that heartbeats take, and the memory in MiB."""
    await asyncio.sleep(_SETTLING_SECONDS)
    before, begun = processor_seconds(server.pid), time.perf_counter()
    await asyncio.sleep(_HEARTBEATS_SECONDS)
    seconds = time.perf_counter() - begun
    return (processor_seconds(server.pid) - before) / seconds, server.resident_bytes() / _MIB


async def _probe(server: Server, load: str) -> Probe:
    """Run a load, and send small requests until it ends."""
    connection, waits = await Address(server.url).connect(), []
    async with _load(server, load) as running:
        while not running.done():
            begun = time.perf_counter()
            await connection.ask("GET", _DEFAULT)
            waits.append(time.perf_counter() - begun)
            await asyncio.sleep(_PROBE_SECONDS)
    connection.close()
    waits.sort()
    return Probe(running.result(), waits[len(waits) * 99 // 100], waits[-1])


@asynccontextmanager
async def _load(server: Server, load: str) -> AsyncIterator[asyncio.Task[dict[str, float]]]:
    module = "tests.bench.apiserver.large_cluster"
    command = (sys.executable, "-m", module, "--server", server.url, "--what", load)
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)

    async def result() -> dict[str, float]:
        out, _ = await process.communicate()
        found: dict[str, float] = json.loads(out)
        return found

    yield asyncio.create_task(result())


def _probed(name: str, what: str, probe: Probe) -> NamedFigures:
    shown = f"{milliseconds(probe.p99)}, at most {milliseconds(probe.most)}"
    took = f"{probe.found['seconds']:.1f} s"
    yield f"{name}-wait", Figure(f"{what} ({took}): p99", shown, probe.p99)


def _watched(found: dict[str, float]) -> NamedFigures:
    what = f"{EVENTS_PER_SECOND:,} events a second to {WATCHERS} watchers of all pods"
    shown = f"p50 {milliseconds(found['p50'])}, p99 {milliseconds(found['p99'])}"
    yield "watch", Figure(f"{what}: p99", f"{shown}; {found['rate']:,.0f} a second", found["p99"])


async def _scheduled(server: Server) -> list[tuple[str, Figure]]:
    """Measure pods that a real kube-scheduler assigns."""
    with TemporaryDirectory() as name:
        kubeconfig = write_kubeconfig(Path(name) / "kubeconfig", server.url)
        async with kube_scheduler(program("scheduler"), configuration(kubeconfig, ())):
            async with _load(server, "warm") as warming:
                await warming
            before = processor_seconds(server.pid)
            async with _load(server, "create") as creating:
                found = await creating
            cost = (processor_seconds(server.pid) - before) / found["created"]
    what = f"{CREATED_PER_SECOND} pods a second created, until they run"
    shown = f"{found['rate']:,.0f} a second, p50 {milliseconds(found['p50'])}"
    return [
        ("created", Figure(f"{what}: time for one", shown, 1 / found["rate"])),
        ("created-processor", Figure("processor time for one of them", milliseconds(cost), cost)),
    ]
