"""Questions after others: of a kind that is known, and with many pods nominated.

Between two questions of a kind one pod, or one budget, changes. In a cluster with nominated pods,
and about pods with host ports, on huge nodes or on irregular rows, a question of a new kind is
compared with one of the same pod without these, in turns.
"""

from __future__ import annotations

import gc
import statistics
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import count, islice
from typing import Final

from msgspec import structs

from policies.kubernetes.snapshot import (
    ANY_ADDRESS,
    HostPort,
    NodeState,
    Pod,
    Snapshot,
    build_node_state,
)
from policies.preemption.policy import DEFAULT_RULES
from policies.preemption.vectorized import VectorizedEngine
from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.bench.clusters import pending
from tests.bench.decisions.events import ChangingCluster
from tests.bench.decisions.questions import WARM_UP, decide_once, kinds_of
from tests.bench.timing import Effort, latency, milliseconds, repeated

PREEMPTORS: Final = ("plain", "constrained", "large")
NOMINATED: Final = 500
KINDS: Final = 32
_PORT: Final = HostPort(ANY_ADDRESS, "TCP", 8080)
_ODD: Final = 50
_MIB: Final = 2**20


def of_known_kinds(snapshot: Snapshot, effort: Effort) -> dict[str, Figure]:
    """Measure questions of kinds that are known."""
    return dict(_of_known_kinds(snapshot, effort))


def beside_others(snapshot: Snapshot, effort: Effort) -> dict[str, Figure]:
    """Measure questions with nominated pods, host ports, huge nodes and irregular rows."""
    figures: dict[str, Figure] = {}
    for preemptor in PREEMPTORS:
        pod = pending(preemptor, len(snapshot.nodes))
        crowded = _with_nominated(snapshot, pod)
        what = f"{preemptor}, {NOMINATED} pods nominated"
        figures |= dict(
            _beside(f"nominated-{preemptor}", what, pod, (pod, crowded), snapshot, effort)
        )
    plain = pending("plain", len(snapshot.nodes))
    ported = structs.replace(plain, host_ports=frozenset([_PORT]))
    others = {
        "host-ports": ("with a host port", (ported, _with_ports(snapshot))),
        "huge-nodes": (f"{_ODD} huge nodes", (plain, _with_changed(snapshot, _ODD, _huge_node))),
        "unreadable": (f"{_ODD} unreadable pods", (plain, _with_changed(snapshot, _ODD, _unread))),
        "irregular": (f"{_ODD} huge requests", (plain, _with_changed(snapshot, _ODD, _huge_pod))),
    }
    for name, (what, asked) in others.items():
        figures |= dict(_beside(name, f"plain, {what}", plain, asked, snapshot, effort))
    return figures


def _of_known_kinds(snapshot: Snapshot, effort: Effort) -> NamedFigures:
    nodes = len(snapshot.nodes)
    for preemptor in PREEMPTORS:
        engine, pod = VectorizedEngine(DEFAULT_RULES), pending(preemptor, nodes)
        moving = ChangingCluster(snapshot)
        engine.follow(moving.snapshot, None)
        for change, then, step in (
            ("", "a pod", _no_change),
            ("-budget", "a budget", _change_budget),
        ):
            taken = _median(engine, pod, moving, step, effort)
            what = f"vectorized, {nodes:,} nodes, {preemptor}, after {then} changed: p50"
            yield f"next-{nodes}-{preemptor}{change}", Figure(what, milliseconds(taken), taken)
    yield f"kinds-{nodes}", _memory(snapshot)


Step = Callable[[ChangingCluster, int], None]


def _median(
    engine: VectorizedEngine, pod: Pod, moving: ChangingCluster, step: Step, effort: Effort
) -> float:
    turns = count()

    def once() -> float:
        step(moving, next(turns))
        return decide_once(engine, pod, moving)

    for _ in range(WARM_UP):
        once()
    return latency(repeated(effort, once)).p50


def _no_change(moving: ChangingCluster, turn: int) -> None:
    """Leave the budgets as they are."""


def _change_budget(moving: ChangingCluster, turn: int) -> None:
    """Change what one of the budgets allows."""
    budgets = list(moving.snapshot.budgets)
    place = turn % len(budgets)
    budgets[place] = replace(budgets[place], allowed=(budgets[place].allowed + 1) % 6)
    moving.snapshot = replace(moving.snapshot, budgets=tuple(budgets))


def _memory(snapshot: Snapshot) -> Figure:
    """Return what an engine keeps of the results of many kinds."""
    engine = VectorizedEngine(DEFAULT_RULES)
    engine.follow(snapshot, None)
    pod = pending("constrained", len(snapshot.nodes))
    engine.preempt(pod, snapshot)
    tracemalloc.start()
    for kind in islice(kinds_of(pod), KINDS):
        engine.preempt(kind, snapshot)
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0] / _MIB
    tracemalloc.stop()
    what = f"vectorized, {len(snapshot.nodes):,} nodes: memory for {KINDS} kinds of pods"
    return untimed(what, f"{kept:.1f} MiB", kept)


def _beside(
    name: str, what: str, pod: Pod, asked: tuple[Pod, Snapshot], snapshot: Snapshot, effort: Effort
) -> NamedFigures:
    """Compare a question with one about ``pod`` on ``snapshot``, both of ever new kinds."""
    engines = VectorizedEngine(DEFAULT_RULES), VectorizedEngine(DEFAULT_RULES)
    clusters = ChangingCluster(asked[1]), ChangingCluster(snapshot)
    kinds = kinds_of(asked[0]), kinds_of(pod)
    for engine, cluster in zip(engines, clusters, strict=True):
        engine.follow(cluster.snapshot, None)
    taken: tuple[list[float], list[float]] = ([], [])
    for round_ in range(WARM_UP + max(effort.rounds, 10)):
        for engine, each, cluster, seconds in zip(engines, kinds, clusters, taken, strict=True):
            once = decide_once(engine, next(each), cluster)
            if round_ >= WARM_UP:
                seconds.append(once)
    found, compared = map(statistics.median, taken)
    shown = f"{found / compared:.2f}: {milliseconds(found)} by {milliseconds(compared)}"
    title = f"vectorized, {len(snapshot.nodes):,} nodes, {what}, by the same without: p50"
    yield f"{name}-ratio", untimed(title, shown, found / compared)


def _with_nominated(snapshot: Snapshot, pod: Pod) -> Snapshot:
    """Return the snapshot with pods like ``pod``, but more important, nominated to its nodes."""

    def nominate(place: int, state: NodeState) -> NodeState:
        name = f"nominated-{place}"
        other = structs.replace(
            pod, name=name, uid=name, nominated_node=state.node.name, priority=10**6
        )
        return structs.replace(state, nominated=(other,))

    return _with_changed(snapshot, NOMINATED, nominate)


def _with_ports(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with a pod on some nodes that has the host port."""

    def use(_: int, state: NodeState) -> NodeState:
        first = structs.replace(state.pods[0], host_ports=frozenset([_PORT]))
        return structs.replace(state, pods=(first, *state.pods[1:]), used_ports=frozenset([_PORT]))

    return _with_changed(snapshot, NOMINATED, use)


def _huge_node(_: int, state: NodeState) -> NodeState:
    """Return a node with as much storage as a quantity may have."""
    allocatable = structs.replace(state.node.allocatable, ephemeral_storage=2**63 - 1)
    return structs.replace(state, node=structs.replace(state.node, allocatable=allocatable))


def _unread(_: int, state: NodeState) -> NodeState:
    """Return a node with a pod that could not be decoded."""
    return structs.replace(state, unreadable=("default/unreadable",))


def _huge_pod(_: int, state: NodeState) -> NodeState:
    """Return a node with a pod whose request the columns cannot hold."""
    requests = structs.replace(state.pods[0].requests, ephemeral_storage=2**60)
    huge = structs.replace(state.pods[0], requests=requests)
    return build_node_state(state.node, (huge, *state.pods[1:]))


def _with_changed(
    snapshot: Snapshot, number: int, change: Callable[[int, NodeState], NodeState]
) -> Snapshot:
    nodes = dict(snapshot.nodes)
    step = len(nodes) // number
    for place, name in enumerate(list(nodes)[: step * number : step]):
        nodes[name] = change(place, nodes[name])
    return replace(snapshot, nodes=nodes)
