"""Node-pressure eviction in this process: one ranking, and one round of 5,000 nodes.

The nodes have 30 pods each, and the kubelet's default configuration. In the calm round no node is
short of memory; in the short one every node is, so that each ranks its pods and evicts one. Every
measured round is the second of its kubelets. The observations are built beforehand.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Final

from policies.eviction.config import DEFAULT_THRESHOLDS, EvictionConfig, ResolvedConfig, resolve
from policies.eviction.filesystems import ONE_FILESYSTEM
from policies.eviction.manager import SyncInput, SyncOutcome, synchronize
from policies.eviction.manager_state import ManagerState
from policies.eviction.pods import EvictablePod
from policies.eviction.ranking import rank
from policies.eviction.signals import Signal
from policies.eviction.stats import NodeStats, PodStats, Summary
from tests.bench.budgets import Figure, NamedFigures
from tests.bench.timing import Effort, latency, milliseconds, repeated
from tests.builders.eviction import container, disk, evictable, filesystem, node, scratch, uses

_RANKED: Final = 500
_NODES: Final = 5_000
_PODS: Final = 30
_PRIORITIES: Final = (0, 0, 10, 100)
_RANKINGS: Final = {
    "memory": Signal.MEMORY,
    "disk": Signal.NODE_FS,
    "inodes": Signal.NODE_FS_INODES,
    "pids": Signal.PIDS,
}


def measure(effort: Effort) -> dict[str, Figure]:
    """Measure rankings and rounds."""
    gc.collect()
    gc.freeze()
    return dict([*_rankings(effort), *_rounds(effort)])


def _rankings(effort: Effort) -> NamedFigures:
    pods, stats = _population(Random(7), _RANKED)
    for name, signal in _RANKINGS.items():
        work = partial(rank, pods, stats, signal, ONE_FILESYSTEM)
        taken = latency(repeated(effort, partial(_timed, work)))
        what = f"eviction: {_RANKED} pods ranked for {name}, p50"
        yield f"evict-rank-{name}", Figure(what, milliseconds(taken.p50), taken.p50)


def _rounds(effort: Effort) -> NamedFigures:
    rng = Random(7)
    fleet = [_population(rng, _PODS) for _ in range(_NODES)]
    plan = resolve(EvictionConfig(DEFAULT_THRESHOLDS))
    for name, memory, outcome in (
        ("calm", "10Gi", SyncOutcome.CALM),
        ("short", "50Mi", SyncOutcome.EVICTED),
    ):
        first, second = (
            [
                SyncInput(at * 10**9, pods, Summary(_node(memory, at), stats))
                for pods, stats in fleet
            ]
            for at in (10, 20)
        )
        states = [synchronize(plan, ManagerState(), sample).state for sample in first]

        sync = partial(_round, plan, states, second)
        if sync() != {outcome}:
            raise RuntimeError(f"the benchmark's fleet is not {name}")
        taken = latency(repeated(effort, partial(_timed, sync)))
        what = f"eviction: one round of {_NODES:,} nodes with {_PODS} pods, all {name}, p50"
        yield f"evict-sync-{name}", Figure(what, milliseconds(taken.p50), taken.p50)


def _round(
    plan: ResolvedConfig, states: Sequence[ManagerState], samples: Sequence[SyncInput]
) -> set[SyncOutcome]:
    return {
        synchronize(plan, state, sample).outcome
        for state, sample in zip(states, samples, strict=True)
    }


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _node(memory: str, at: int) -> NodeStats:
    half = filesystem(at=at)
    return node(memory, at=at, node_fs=half, image_fs=half, container_fs=half)


def _population(rng: Random, size: int) -> tuple[list[EvictablePod], dict[str, PodStats]]:
    """Build pods with requests and limits, and their usage."""
    pods, stats = [], {}
    for index in range(size):
        pod = evictable(
            f"pod-{index}",
            memory="512Mi",
            storage="1Gi",
            storage_limit="4Gi",
            priority=rng.choice(_PRIORITIES),
            containers=[container(memory="512Mi", storage="1Gi", limit="4Gi")],
            volumes=[scratch(limit="4Gi")],
        )
        layer, logs, volume = (disk(str(rng.randrange(2**30)), rng.randrange(1000)) for _ in "abc")
        pods.append(pod)
        stats[pod.uid] = uses(
            str(rng.randrange(2**30)),
            processes=rng.randrange(100),
            layer=layer,
            logs=logs,
            volumes={"scratch": volume},
            storage=str(rng.randrange(2**31)),
        )
    return pods, stats
