"""A cluster that changes by one pod at a time, and the cost of following it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random

from msgspec import structs

from extender.cluster.scheduler_cache import SchedulerCache
from policies.kubernetes.shared_mapping import with_entries
from policies.kubernetes.snapshot import Pod, Snapshot, build_node_state
from policies.preemption.engine import Engine
from policies.preemption.policy import DEFAULT_RULES
from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.bench.timing import Effort
from tests.properties.engines import ENGINES

_ANEW = 3


@dataclass(frozen=True, slots=True)
class Event:
    """A watch event: a pod as it is now, or (``gone``) as it was last."""

    pod: Pod
    node: str
    gone: bool


class ChangingCluster:
    """Snapshots of a cluster where, in turns, a pod is created, one terminates, one is deleted.

    The node of each change is random.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._rng = Random(7)
        self._names = list(snapshot.nodes)
        self._turn = 0

    def step(self) -> Event:
        """Make the next snapshot, and return the change since the last one."""
        name = self._rng.choice(self._names)
        state = self.snapshot.nodes[name]
        event = self._event(name, state.pods)
        pods = [pod for pod in state.pods if pod.uid != event.pod.uid]
        present = pods if event.gone else [*pods, event.pod]
        self.snapshot = replace(
            self.snapshot,
            nodes=with_entries(self.snapshot.nodes, {name: build_node_state(state.node, present)}),
            generation=self.snapshot.generation + 1,
        )
        self._turn += 1
        return event

    def _event(self, node: str, pods: tuple[Pod, ...]) -> Event:
        pod = self._rng.choice(pods)
        if self._turn % 3 == 0:
            name = f"new-{self._turn}"
            return Event(structs.replace(pod, name=name, uid=f"uid-{name}"), node, gone=False)
        if self._turn % 3 == 1:
            return Event(structs.replace(pod, terminating=not pod.terminating), node, gone=False)
        return Event(pod, node, gone=True)


def measure(moving: ChangingCluster, effort: Effort) -> dict[str, Figure]:
    """Measure single pod events, through the live cluster and into each engine's columns."""
    nodes = len(moving.snapshot.nodes)
    figures = {f"live-event-{nodes}": _live(moving, effort, nodes)}
    for name in ENGINES.keys() - {"reference"}:
        figures |= _columns(name, moving, effort, nodes)
    return figures


def growth(figures: Mapping[str, Figure], effort: Effort) -> NamedFigures:
    """Compare an event in the largest cluster with one in the smallest."""
    least, most = min(effort.nodes), max(effort.nodes)
    ratio = figures[f"live-event-{most}"].cost / figures[f"live-event-{least}"].cost
    what = f"one pod event through the live cluster, {most:,} nodes by {least:,}: p50"
    yield "live-event-growth", untimed(what, f"{ratio:.2f}", ratio)


def _live(moving: ChangingCluster, effort: Effort, nodes: int) -> Figure:
    cluster = SchedulerCache(time.monotonic)
    start = moving.snapshot
    cluster.nodes.replace([state.node for state in start.nodes.values()])
    cluster.budgets.replace(start.budgets)
    cluster.pods.replace([pod for state in start.nodes.values() for pod in state.pods])
    cluster.snapshot()
    what = f"one pod event through the live cluster to its next snapshot, {nodes:,} nodes"
    return _median(what, (_seconds_live(cluster, moving.step()) for _ in range(effort.events)))


def _seconds_live(cluster: SchedulerCache, event: Event) -> float:
    begun = time.perf_counter()
    if event.gone:
        cluster.pods.remove(event.pod)
    else:
        cluster.pods.upsert(event.pod)
    cluster.snapshot()
    return time.perf_counter() - begun


def _columns(name: str, moving: ChangingCluster, effort: Effort, nodes: int) -> dict[str, Figure]:
    engine = ENGINES[name](DEFAULT_RULES)
    seconds = [_seconds_anew(name, moving.snapshot) for _ in range(_ANEW)]
    anew = statistics.median(seconds)
    engine.follow(moving.snapshot, None)
    what = f"{name}, one pod event into the columns, {nodes:,} nodes"
    taken = (_seconds_followed(engine, moving) for _ in range(effort.events))
    return {
        f"{name}-anew-{nodes}": Figure(
            f"{name}, the columns built anew, {nodes:,} nodes", f"{anew * 1e3:,.0f} ms", anew
        ),
        f"{name}-event-{nodes}": _median(what, taken),
    }


def _seconds_anew(name: str, snapshot: Snapshot) -> float:
    engine = ENGINES[name](DEFAULT_RULES)
    begun = time.perf_counter()
    engine.follow(snapshot, None)
    return time.perf_counter() - begun


def _seconds_followed(engine: Engine, moving: ChangingCluster) -> float:
    before = moving.snapshot
    event = moving.step()
    begun = time.perf_counter()
    engine.follow(moving.snapshot, [event.node])
    taken = time.perf_counter() - begun
    del before  # an old snapshot is freed when its last reader drops it
    return taken


def _median(what: str, taken: Iterator[float]) -> Figure:
    median = statistics.median(taken)
    return Figure(f"{what}: p50", f"{median * 1e6:.1f} µs", median)
