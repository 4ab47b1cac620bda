"""The time of a preemption by a real kube-scheduler: alone, and with ``reprieve serve``.

On the cluster of the other measurements (every node full, 100 disruption budgets), pods of high
priority are created that need six victims each on any node. Measured are the time from a pod's
creation to its nomination, one pod after the other (each is bound before the next one), and the
nominations in a second of pods that are created at once.

- *alone*: kube-scheduler without an extender, by default with a dry run on a tenth of the nodes;
- *offered*: the same, and the extender chooses among these nodes;
- *cluster*: kube-scheduler samples one node, the extender evaluates all of them;
- *floor*: kube-scheduler samples one node, and an extender agrees at once;
- *exact*: kube-scheduler alone, on every node. Few rounds: each takes seconds.

Each has its own scheduler process, and extender, and starts with the same cluster.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from policies import DEFAULT_RULES, decide_filter, post_filter
from policies.preemption.policy import DEFAULT_CANDIDATE_ORDER
from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.bench.clusters import cluster, pending, snapshot_of
from tests.bench.servers.incoming_pods import Chosen, PodCreator, pod_creator, prepare
from tests.bench.servers.processes import (
    READY_SECONDS,
    Server,
    echo,
    loaded,
    processor_seconds,
    reprieve,
)
from tests.bench.timing import milliseconds
from tests.commands import wait_ready
from tests.conformance.build import program
from tests.conformance.scheduling.kube_scheduler import (
    DEFAULT,
    EVERY_NODE,
    Extender,
    Sampling,
    configuration,
    kube_scheduler,
)
from tests.e2e.scenario_runner import write_kubeconfig

UPSTREAM: Final = "1.37"
_ONE: Final = Sampling(percentage=0, absolute=1)
_PATIENT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Extent:
    """The sizes of clusters, the number of rounds, and the number of pods created at once.

    ``exact_rounds`` are those of kube-scheduler alone on every node, which are slow.
    """

    nodes: tuple[int, ...]
    rounds: int
    crowd: int
    exact_rounds: int


FULL: Final = Extent(nodes=(1_000, 5_000), rounds=15, crowd=100, exact_rounds=3)
QUICK: Final = Extent(nodes=(1_000,), rounds=7, crowd=20, exact_rounds=0)


@dataclass(frozen=True, slots=True)
class Setup:
    """The options of kube-scheduler: the nodes that it samples, and its extender."""

    name: str
    sampling: Sampling = DEFAULT
    search: str = ""


ALONE: Final = Setup("alone")
SETUPS: Final = (
    ALONE,
    Setup("offered", search="offered"),
    Setup("cluster", _ONE, search="cluster"),
    Setup("floor", _ONE, search="echo"),
)
EXACT: Final = Setup("exact", EVERY_NODE)


@dataclass(slots=True)
class Costs:
    """The durations of one setup, in seconds; processor time of scheduler and extender together."""

    first: Chosen
    rounds: list[float] = field(default_factory=list)
    processor: float = 0.0
    crowd: float = 0.0

    @property
    def latency(self) -> float:
        """The median from creation to nomination."""
        return statistics.median(self.rounds)


def measure(extent: Extent) -> dict[str, Figure]:
    """Measure every setup on clusters of every size."""
    return asyncio.run(_measure(extent))


async def _measure(extent: Extent) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for nodes in extent.nodes:
        with loaded(nodes, 30) as api:
            await prepare(api.url)
            costs = {each.name: await _costs(api, each, extent) for each in SETUPS}
            exact = await _exact(api, extent)
        figures |= dict(_figures(nodes, costs, extent))
        figures |= dict(_exact_figures(nodes, exact, costs["cluster"]))
        figures |= dict(_choice(nodes, costs["cluster"].first, exact.first))
    return figures


async def _exact(api: Server, extent: Extent) -> Costs:
    async with _set_up(api, EXACT) as running:
        return await _rounds(running, extent.exact_rounds)


async def _costs(api: Server, setup: Setup, extent: Extent) -> Costs:
    async with _set_up(api, setup) as running:
        costs = await _rounds(running, extent.rounds)
        costs.crowd = await running.arriving.at_once(extent.crowd)
    return costs


async def _rounds(running: _Running, rounds: int) -> Costs:
    """Create a pod as the warm-up, then one after the other."""
    costs = Costs((await running.arriving.one()).chosen)
    before = running.processor_seconds()
    for _ in range(rounds):
        costs.rounds.append((await running.arriving.one()).seconds)
    if rounds:
        costs.processor = (running.processor_seconds() - before) / rounds
    return costs


@dataclass(frozen=True, slots=True)
class _Running:
    arriving: PodCreator
    pids: tuple[int, ...]

    def processor_seconds(self) -> float:
        return sum(map(processor_seconds, self.pids))


@asynccontextmanager
async def _set_up(api: Server, setup: Setup) -> AsyncIterator[_Running]:
    """Run a scheduler and its extender on the restored cluster until the block ends."""
    async with AsyncExitStack() as stack:
        arriving = await stack.enter_async_context(pod_creator(api.url))
        beside = _extender(stack, api, setup)
        if beside is not None and setup.search != "echo":
            await wait_ready(beside.url, READY_SECONDS)
        directory = Path(stack.enter_context(TemporaryDirectory()))
        kubeconfig = write_kubeconfig(directory / "kubeconfig", api.url)
        entries = [] if beside is None else [Extender(beside.url, ("preempt",), _PATIENT_SECONDS)]
        given = configuration(kubeconfig, entries, setup.sampling)
        process = await stack.enter_async_context(kube_scheduler(program("scheduler"), given))
        yield _Running(arriving, (process.pid, *(() if beside is None else (beside.pid,))))


def _extender(stack: AsyncExitStack, api: Server, setup: Setup) -> Server | None:
    if not setup.search:
        return None
    if setup.search == "echo":
        return stack.enter_context(echo())
    flags = ("--port", "0", "--server", api.url, "--upstream", UPSTREAM, "--search", setup.search)
    return stack.enter_context(reprieve("serve", *flags))


def _figures(nodes: int, costs: Mapping[str, Costs], extent: Extent) -> NamedFigures:
    alone, cluster_wide, floor = (costs[name] for name in ("alone", "cluster", "floor"))
    for name, each in costs.items():
        what = f"{name}, {nodes:,} nodes: creation to nomination, p50"
        shown = f"{milliseconds(each.latency)} of {extent.rounds}"
        yield f"{name}-{nodes}", Figure(what, shown, each.latency)
        what = f"{name}, {nodes:,} nodes: processor time of scheduler and extender for one"
        yield (
            f"{name}-{nodes}-processor",
            Figure(what, milliseconds(each.processor), each.processor),
        )
        what = f"{name}, {nodes:,} nodes: {extent.crowd} at once"
        shown = f"{extent.crowd / each.crowd:.1f} nominated a second"
        yield f"{name}-{nodes}-crowd", Figure(what, shown, each.crowd / extent.crowd)
    for rival, other in (("alone", alone), ("floor", floor)):
        what = f"cluster by {rival}, {nodes:,} nodes"
        took, ticked = (
            (cluster_wide.latency, other.latency),
            (cluster_wide.processor, other.processor),
        )
        yield f"by-{rival}-{nodes}", _ratio(f"{what}: p50", *took)
        yield f"by-{rival}-{nodes}-processor", _ratio(f"{what}: processor time", *ticked)
    what = f"cluster by floor, {nodes:,} nodes: time for one of {extent.crowd} at once"
    crowds = (each.crowd / extent.crowd for each in (cluster_wide, floor))
    yield f"by-floor-{nodes}-crowd", _ratio(what, *crowds)


def _exact_figures(nodes: int, exact: Costs, ours: Costs) -> NamedFigures:
    if not exact.rounds:
        return
    what, latency = f"exact, {nodes:,} nodes: creation to nomination, p50", exact.latency
    yield f"exact-{nodes}", Figure(what, f"{milliseconds(latency)} of {len(exact.rounds)}", latency)
    what = f"exact, {nodes:,} nodes: processor time of scheduler for one"
    shown = milliseconds(exact.processor)
    yield f"exact-{nodes}-processor", Figure(what, shown, exact.processor)
    what = f"cluster by exact, {nodes:,} nodes: p50"
    yield f"by-exact-{nodes}", _ratio(what, ours.latency, latency)


def _ratio(what: str, ours: float, other: float) -> Figure:
    more = milliseconds(abs(ours - other))
    shown = f"{ours / other:.3f}, {more} {'more' if ours > other else 'less'}"
    return untimed(what, shown, ours / other)


def _choice(nodes: int, ours: Chosen, exact: Chosen) -> NamedFigures:
    """Compare two choices on the same cluster by kube-scheduler's criteria."""
    snapshot, pod = snapshot_of(cluster(nodes)), pending("plain", nodes)
    filtering = decide_filter(pod, snapshot, DEFAULT_RULES)
    found = post_filter(filtering, snapshot, DEFAULT_RULES, [ours.node, exact.node]).candidates
    for each in (ours, exact):
        victims = {victim.name for victim in found[each.node].victims.pods}
        if victims != each.victims:
            raise RuntimeError(f"on {each.node} {each.victims} went, not {victims}")
    one, other = (DEFAULT_CANDIDATE_ORDER.key(found[each.node])[0] for each in (ours, exact))
    what = f"cluster, {nodes:,} nodes: its choice, compared with exact"
    shown = "worse" if one > other else "better" if one < other else f"as good: {ours.node}"
    yield f"worse-{nodes}", untimed(what, shown, float(one > other))
