"""What shadow policies cost the answers: their p99 with two of them, by that without, in turns.

Two services in this process have the same cluster of 5,000 nodes and 150,000 pods, of which some
change before each call; one has shadow policies. Both get the same calls in turns, block by block:
in *bursts*, as kube-scheduler works off its queue, one call after another and then a pause, and at
*random*, so that some calls arrive while a shadow policy decides.

Time is the processor time of this process, and pauses take none: the clock jumps over them. So
other processes do not matter, and a call that arrives during a decision of a shadow policy waits
for its rest. After a pause, the processor's caches have other data, with shadow policies or
without, as on a machine where other processes run. HTTP is left out: with its time, which is equal,
ratios would be smaller.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import random
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Final

import numpy as np
from msgspec.structs import replace

from extender.cluster.scheduler_cache import SchedulerCache
from extender.config.component_config import Config
from extender.config.preemption_policy import find_policy
from extender.protocol.verb_context import Search
from extender.server.call_queue import CallQueue
from extender.server.fallback_policy import FallbackPolicy
from extender.server.service import Service, VerbCall
from extender.server.shadow_decisions import ShadowDecisions
from extender.server.shadow_use import build_shadows
from policies.engine_selection import build_engine
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.policy import SchedulerRules
from tests.bench.budgets import Figure, untimed
from tests.bench.clusters import cluster, snapshot_of
from tests.bench.extender import preempt_body
from tests.bench.timing import Latency, latency, milliseconds
from tests.commands import ROOT

NODES: Final = 5_000
_POLICIES: Final = ("kube-scheduler", str(ROOT / "deploy/policies/spare-long-training-jobs.yaml"))
_OFFERED: Final = 100
_BURST: Final = 20
_BURST_PAUSE_SECONDS: Final = 2.0
_MEAN_GAP_SECONDS: Final = 0.1
_CHANGES: Final = 5
"""Pods that change before each call."""
_BLOCK: Final = 100
"""The calls that a service gets before it is the other one's turn."""
_OTHER_DATA: Final = np.ones(8 * 2**20)
"""Of 64 MiB."""
_WARM_UP: Final = 5
_SETTLED: Final = 50
"""Iterations of the event loop after which all tasks wait for the clock."""

Gaps = Callable[[], Iterator[float]]
"""Returns the seconds to wait before each call."""


class CpuClock:
    """The processor time of this process, and the pauses that were jumped over."""

    def __init__(self) -> None:
        self._skipped = 0.0
        self._numbers = count()
        self._sleeping: list[tuple[float, int, asyncio.Future[None]]] = []
        self.slept = asyncio.Event()
        """Set once a task sleeps."""

    def monotonic(self) -> float:
        return time.process_time() + self._skipped

    def now_ns(self) -> int:
        return int(self.monotonic() * 1e9)

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        self.slept.set()
        due = self.monotonic() + seconds
        heapq.heappush(self._sleeping, (due, next(self._numbers), woken))
        await woken

    async def run(self, work: Coroutine[None, None, None]) -> None:
        """Run ``work``, and jump to the next time for which a task waits when all of them wait."""
        task = asyncio.create_task(work)
        while not task.done():
            for _ in range(_SETTLED):
                await asyncio.sleep(0)
            if self._sleeping and not task.done():
                due, _, woken = heapq.heappop(self._sleeping)
                self._skipped += max(0.0, due - self.monotonic())
                if not woken.done():
                    woken.set_result(None)
        await task


@dataclass
class Measured:
    """A service, and the seconds from when each call was due to its answer."""

    cluster: SchedulerCache
    service: Service
    clock: CpuClock
    keys: Sequence[str]
    taken: list[float] = field(default_factory=list)
    is_busy: bool = False

    def idle_seconds(self) -> float:
        last = self.service.call_queue.last_used
        return 0.0 if self.is_busy else self.clock.monotonic() - last

    def add_shadows(self) -> ShadowDecisions:
        """Add shadow policies to the service, and return them."""
        rules = [
            SchedulerRules(policy=each.default, policy_rules=each.rules)
            for each in map(find_policy, _POLICIES)
        ]
        config, registry = Config(search=Search.CLUSTER), self.service.metrics.registry
        shadows = build_shadows(config, rules, self.clock, self.idle_seconds, registry, None)
        self.service.shadows = shadows
        return shadows

    async def call(self, body: bytes, gap: float, changes: random.Random) -> None:
        """Change some pods, and send a call after ``gap`` seconds."""
        pods = self.cluster.pods.by_key
        for key in changes.sample(self.keys, _CHANGES):
            pod = pods[key]
            if isinstance(pod, Pod):
                self.cluster.pods.upsert(replace(pod, started_ns=(pod.started_ns or 0) + 1))
        self.cluster.snapshot()
        due = self.clock.monotonic() + gap
        waited = 0.0
        if gap:
            await self.clock.sleep(gap)
            waited = self.clock.monotonic() - due
            _use_caches()
        begun = self.clock.monotonic()
        self.is_busy = True
        reply = await self.service.call(VerbCall("preempt", body, begun))
        self.taken.append(waited + self.clock.monotonic() - begun)
        self.is_busy = False
        reply.record()


FULL: Final = 3_000
QUICK: Final = 1_000
"""How many calls each service gets in each pattern."""


def measure(calls: int) -> dict[str, Figure]:
    """Measure both patterns with so many calls to each service."""
    snapshot = snapshot_of(cluster(NODES))
    body = preempt_body(snapshot, _OFFERED)
    figures: dict[str, Figure] = {}
    for name, gaps in (("bursts", _bursts), ("random", _random)):
        figures |= asyncio.run(_pattern(name, snapshot, body, gaps, calls))
    return figures


def _use_caches() -> None:
    """Fill the caches of the processor with other data."""
    _OTHER_DATA.sum()


def _bursts() -> Iterator[float]:
    while True:
        yield _BURST_PAUSE_SECONDS
        yield from [0.0] * (_BURST - 1)


def _random() -> Iterator[float]:
    rng = random.Random(7)
    while True:
        yield rng.expovariate(1 / _MEAN_GAP_SECONDS)


async def _pattern(
    name: str, snapshot: Snapshot, body: bytes, gaps: Gaps, calls: int
) -> dict[str, Figure]:
    clock = CpuClock()
    without, shadowed = (_service(snapshot, clock) for _ in range(2))
    shadows = shadowed.add_shadows()
    deciding = asyncio.create_task(shadows.run(_ready(), shadowed.cluster.snapshot))
    await clock.slept.wait()  # the engines are built in a thread
    await clock.run(_in_turns(without, shadowed, body, gaps, calls))
    deciding.cancel()
    return _compared(name, latency(without.taken), latency(shadowed.taken))


def _service(snapshot: Snapshot, clock: CpuClock) -> Measured:
    engine = build_engine(SchedulerRules())
    live = SchedulerCache(clock.monotonic, engine.follow)
    live.nodes.replace([state.node for state in snapshot.nodes.values()])
    pods = [pod for state in snapshot.nodes.values() for pod in state.pods]
    live.pods.replace(pods)
    live.budgets.replace(list(snapshot.budgets))
    queue = CallQueue(monotonic=clock.monotonic)
    patient = FallbackPolicy({"preempt": 60.0})
    service = Service(
        live, engine, clock, Search.CLUSTER, fallback_policy=patient, call_queue=queue
    )
    return Measured(live, service, clock, [pod.key for pod in pods])


async def _ready() -> None:
    """Return at once: the cluster is known."""


async def _in_turns(
    without: Measured, shadowed: Measured, body: bytes, gaps: Gaps, calls: int
) -> None:
    waits, changes = gaps(), random.Random(8)
    for each in (without, shadowed):
        for _ in range(_WARM_UP):
            await each.call(body, 0, changes)
        each.taken.clear()
    gc.collect()
    gc.freeze()  # as in serve
    while len(shadowed.taken) < calls:
        gaps_of_block = list(islice(waits, _BLOCK))
        for each in (without, shadowed):
            for gap in gaps_of_block:
                await each.call(body, gap, changes)
            while each.service.shadows is not None and each.service.shadows.waiting:
                await each.clock.sleep(1)  # so that none is decided in the other one's turn


def _compared(name: str, without: Latency, shadowed: Latency) -> dict[str, Figure]:
    what = f"preempt, {NODES:,} nodes, calls {name}, with two shadow policies by without"
    figures = {}
    for suffix, found, bare in (
        ("p50", shadowed.p50, without.p50),
        ("p99", shadowed.p99, without.p99),
    ):
        ratio = found / bare
        shown = f"{ratio:.2f}; {milliseconds(found)} by {milliseconds(bare)} of {without.rounds}"
        figures[f"shadow-{name}-{suffix}"] = untimed(f"{what}: {suffix}", shown, ratio)
    return figures
