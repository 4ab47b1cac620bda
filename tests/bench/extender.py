"""The cost of the extender: decisions in process, eviction, its first sync, its verbs over HTTP.

Over HTTP the cluster has 5,000 nodes and 150,000 pods, served by fakeapi; extender, fakeapi and
echo are processes. ``preempt`` is called as kube-scheduler does with the README's configuration
(one node offered) and by default (a tenth of the nodes); each answer is an assumed preemption for
the next decisions.
"""

from __future__ import annotations

import asyncio
import time

from policies import Snapshot
from tests.bench import pauses
from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.bench.clusters import cluster, encoded, offers, pending, preemptor, snapshot_of
from tests.bench.decisions import (
    eviction,
    expressions,
    policies,
    preemption_decisions,
    ranking,
    spreading,
)
from tests.bench.http import Beside, beside_echo
from tests.bench.servers.processes import READY_SECONDS, Server, echo, loaded, reprieve
from tests.bench.timing import Effort, milliseconds
from tests.commands import wait_ready

NODES = 5_000
SERVING = "vectorized"
"""The engine that decides in ``serve``, to whose decision in process its answer is compared."""

_CLOUD_PREFIX = "ip-10-134-201-17.eu-central-1.comput"
"""Names of 41 characters, as in the call of 221 kB of other measurements."""
_MIB = 2**20
_OFFERED = (1, NODES // 10)
_SYNCED = f"first sync of {NODES:,} nodes and 150,000 pods"


def measure(effort: Effort) -> dict[str, Figure]:
    """Measure everything."""
    decisions = preemption_decisions.measure(effort) | policies.measure(effort)
    ranked = ranking.measure(effort) | eviction.measure(effort) | spreading.measure(effort)
    ranked |= expressions.measure(effort)
    decision = decisions.get(f"{SERVING}-{NODES}-plain")
    served = asyncio.run(_served(effort, None if decision is None else decision.cost))
    served |= pauses.measure(effort)
    return decisions | ranked | served | asyncio.run(_filtered(effort))


async def _served(effort: Effort, decision: float | None) -> dict[str, Figure]:
    with (
        loaded(NODES, 30, more=[preemptor("plain", NODES)]) as api,
        echo() as bare,
        reprieve("serve", "--port", "0", "--search", "cluster", "--server", api.url) as extender,
    ):
        begun = time.perf_counter()
        await wait_ready(extender.url, READY_SECONDS)
        figures = _synced(time.perf_counter() - begun, extender)
        figures |= await _preempt(extender, bare, effort, decision)
        figures |= _memory("memory-later", "resident memory after these calls", extender)
        figures |= await pauses.longest_pause(extender, api, NODES, effort.seconds)
    return figures


def _synced(waited: float, extender: Server) -> dict[str, Figure]:
    listening = extender.started_in
    synced = listening + waited
    return {
        "listening": Figure("exec to listening", f"{listening:.2f} s", listening),
        "sync": Figure(f"{_SYNCED}: exec to ready", f"{synced:.1f} s", synced),
        **_memory("sync-memory", f"{_SYNCED}: resident memory", extender),
    }


def _memory(name: str, what: str, server: Server) -> dict[str, Figure]:
    resident = server.resident_bytes() / _MIB
    return {name: untimed(what, f"{resident:,.0f} MiB", resident)}


async def _filtered(effort: Effort) -> dict[str, Figure]:
    with (
        loaded(NODES, 30, _CLOUD_PREFIX) as api,
        echo() as bare,
        reprieve("serve", "--port", "0", "--server", api.url) as extender,
    ):
        await wait_ready(extender.url, READY_SECONDS)
        names = [f"{_CLOUD_PREFIX}{index:05}" for index in range(NODES)]
        body = encoded({"Pod": preemptor("small", NODES), "Nodes": None, "NodeNames": names})
        beside = await beside_echo(extender, "filter", body, bare, effort)
    what = f"HTTP filter, {NODES:,} node names, {len(body) // 1000} kB"
    figures = dict(_compared("filter", what, beside))
    ratio = beside.extender.p50 / beside.echo.p50
    what = "HTTP filter by the echo: p50"
    return figures | {"filter-ratio": untimed(what, f"{ratio:.2f}", ratio)}


async def _preempt(
    extender: Server, bare: Server, effort: Effort, decision: float | None
) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    snapshot = snapshot_of(cluster(NODES))
    for count in _OFFERED:
        body = preempt_body(snapshot, count)
        beside = await beside_echo(extender, "preempt", body, bare, effort)
        what = f"HTTP preempt, search cluster, {NODES:,} nodes, {count} offered"
        name = f"preempt-offered-{count}"
        figures |= _compared(name, what, beside)
        if decision is not None:
            ratio = beside.extender.p50 / (decision + beside.echo.p50)
            shown = f"{ratio:.2f}; decision {milliseconds(decision)}"
            title = f"{what}, by decision + echo: p50"
            figures[f"{name}-ratio"] = untimed(title, shown, ratio)
    return figures


def _compared(name: str, what: str, beside: Beside) -> NamedFigures:
    ours, bare = beside.extender, beside.echo
    for suffix, seconds, echoed in (("", ours.p50, bare.p50), ("-p99", ours.p99, bare.p99)):
        shown = f"{milliseconds(seconds)} of {ours.rounds}; echo {milliseconds(echoed)}"
        title = f"{what}: {suffix.removeprefix('-') or 'p50'}"
        yield f"{name}{suffix}", Figure(title, shown, seconds)


def preempt_body(snapshot: Snapshot, count: int) -> bytes:
    """Build the call that offers ``count`` nodes with the victims that kube-scheduler finds."""
    names = list(snapshot.nodes)[:count]
    offered = offers(pending("plain", NODES), snapshot, names)
    return encoded(
        {
            "Pod": preemptor("plain", NODES),
            "NodeNameToVictims": None,
            "NodeNameToMetaVictims": offered,
        }
    )
