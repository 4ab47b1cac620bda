"""The time of a preemption by a real kube-scheduler: alone, and with ``reprieve serve``.

On the cluster of the other measurements (every node full, 100 disruption budgets) pods of high
priority want in that need six victims each, wherever they go. Measured are the time from a pod's
creation to its nomination, one pod after the other (each lands before the next one comes), and how
many of those that come at once are nominated in a second.

- *alone*: kube-scheduler by itself, as it is configured by default: a tenth of the nodes is tried;
- *offered*: the same, and the extender chooses among the nodes that were tried;
- *cluster*: kube-scheduler tries one node, the extender evaluates all of them;
- *floor*: kube-scheduler tries one node, and an extender agrees at once, looking at nothing;
- *exact*: kube-scheduler tries every node, by itself. One pod, to compare the victims it chooses.

Each has a scheduler process, and extender, of its own, and finds the cluster as it was.
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
from tests.bench.http import wait_ready
from tests.bench.incoming_pods import Chosen, Newcomers, newcomers, prepare
from tests.bench.processes import Server, echo, loaded, processor_seconds, reprieve
from tests.bench.timing import milliseconds
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
class Trouble:
    """How much is measured: how large the clusters are, how often, and how many come at once."""

    nodes: tuple[int, ...]
    rounds: int
    crowd: int


FULL: Final = Trouble(nodes=(1_000, 5_000), rounds=15, crowd=100)
QUICK: Final = Trouble(nodes=(1_000,), rounds=7, crowd=20)


@dataclass(frozen=True, slots=True)
class Setup:
    """How kube-scheduler is run: how many nodes it tries, and what its extender is, if any."""

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


def measure(trouble: Trouble) -> dict[str, Figure]:
    """Measure every setup on clusters of every size."""
    return asyncio.run(_measure(trouble))


async def _measure(trouble: Trouble) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for nodes in trouble.nodes:
        with loaded(nodes, 30) as api:
            await prepare(api.url)
            costs = {each.name: await _costs(api, each, trouble) for each in SETUPS}
            exact = await _first(api, EXACT)
        figures |= dict(_figures(nodes, costs, trouble))
        figures |= dict(_whom(nodes, costs["cluster"].first, exact))
    return figures


async def _first(api: Server, setup: Setup) -> Chosen:
    async with _set_up(api, setup) as running:
        return (await running.arriving.one()).chosen


async def _costs(api: Server, setup: Setup, trouble: Trouble) -> Costs:
    async with _set_up(api, setup) as running:
        costs = Costs((await running.arriving.one()).chosen)  # also what warms everything up
        before = running.processor_seconds()
        for _ in range(trouble.rounds):
            costs.rounds.append((await running.arriving.one()).seconds)
        costs.processor = (running.processor_seconds() - before) / trouble.rounds
        costs.crowd = await running.arriving.at_once(trouble.crowd)
    return costs


@dataclass(frozen=True, slots=True)
class _Running:
    arriving: Newcomers
    pids: tuple[int, ...]

    def processor_seconds(self) -> float:
        return sum(map(processor_seconds, self.pids))


@asynccontextmanager
async def _set_up(api: Server, setup: Setup) -> AsyncIterator[_Running]:
    """Run a scheduler, and its extender, before the cluster as it was, until the block ends."""
    async with AsyncExitStack() as stack:
        arriving = await stack.enter_async_context(newcomers(api.url))
        beside = _extender(stack, api, setup)
        if beside is not None and setup.search != "echo":
            await wait_ready(beside)
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


def _figures(nodes: int, costs: Mapping[str, Costs], trouble: Trouble) -> NamedFigures:
    alone, cluster_wide, floor = (costs[name] for name in ("alone", "cluster", "floor"))
    for name, each in costs.items():
        what = f"{name}, {nodes:,} nodes: creation to nomination, p50"
        shown = f"{milliseconds(each.latency)} of {trouble.rounds}"
        yield f"{name}-{nodes}", Figure(what, shown, each.latency)
        what = f"{name}, {nodes:,} nodes: processor time of scheduler and extender for one"
        yield (
            f"{name}-{nodes}-processor",
            Figure(what, milliseconds(each.processor), each.processor),
        )
        what = f"{name}, {nodes:,} nodes: {trouble.crowd} at once"
        shown = f"{trouble.crowd / each.crowd:.1f} nominated a second"
        yield f"{name}-{nodes}-crowd", Figure(what, shown, each.crowd / trouble.crowd)
    for rival, other in (("alone", alone), ("floor", floor)):
        what = f"cluster by {rival}, {nodes:,} nodes"
        took, ticked = (
            (cluster_wide.latency, other.latency),
            (cluster_wide.processor, other.processor),
        )
        yield f"by-{rival}-{nodes}", _ratio(f"{what}: p50", *took)
        yield f"by-{rival}-{nodes}-processor", _ratio(f"{what}: processor time", *ticked)


def _ratio(what: str, ours: float, other: float) -> Figure:
    more = milliseconds(abs(ours - other))
    shown = f"{ours / other:.3f}, {more} {'more' if ours > other else 'less'}"
    return untimed(what, shown, ours / other)


def _whom(nodes: int, ours: Chosen, exact: Chosen) -> NamedFigures:
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
