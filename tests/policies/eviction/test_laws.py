"""Laws of the eviction manager over random sequences of syncs.

Configurations have thresholds of every kind. Nodes have amounts around the thresholds, measurements
that are missing or old, and pods that are created, deleted, critical or above their limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from hypothesis import event, given
from hypothesis import strategies as st

from policies.eviction.config import EvictionConfig, resolve
from policies.eviction.filesystems import Layout
from policies.eviction.kubelet_releases import EVICTION_RELEASES
from policies.eviction.manager import SyncOutcome, SyncResult
from policies.eviction.observations import met_thresholds, observe, unresolved_thresholds
from policies.eviction.pods import EvictablePod
from policies.eviction.signals import (
    PRESSURES,
    Pressure,
    Signal,
    percentage_from_fraction,
    read_quantity,
)
from policies.eviction.stats import FilesystemStats, MemoryStats, NodeStats, PodStats, ProcessStats
from policies.eviction.thresholds import Threshold
from tests.builders.eviction import (
    SECOND,
    Kubelet,
    bound,
    container,
    disk,
    evictable,
    node,
    scratch,
    uses,
)

TRANSITIONS = (0, 20, 60)


@dataclass(frozen=True)
class Input:
    """The input of one sync, so many seconds after the last."""

    later: int
    stats: NodeStats | None
    reclaimed: NodeStats | None
    pods: Mapping[EvictablePod, PodStats | None]


@dataclass(frozen=True)
class Run:
    """A kubelet's configuration and the inputs of its syncs."""

    configuration: EvictionConfig
    inputs: Sequence[Input]

    def play(self) -> list[SyncResult]:
        kubelet, at, rounds = Kubelet(resolve(self.configuration)), 0, []
        for each in self.inputs:
            at += each.later
            rounds.append(kubelet.sync(at, each.stats, each.pods, each.reclaimed))
            event(rounds[-1].outcome.name)
        return rounds


values = st.sampled_from(
    [
        read_quantity("100"),
        read_quantity("200"),
        percentage_from_fraction(0.1),
        percentage_from_fraction(0.5),
    ]
)
thresholds = st.builds(
    Threshold,
    st.sampled_from([Signal.MEMORY, Signal.NODE_FS, *Signal]),
    values,
    st.sampled_from([0, 0, 10 * SECOND, 30 * SECOND]),
    st.none() | values,
)
configurations = st.builds(
    EvictionConfig,
    st.lists(thresholds, min_size=2, max_size=5, unique_by=lambda it: (it.signal, it.hard)).map(
        tuple
    ),
    st.sampled_from([period * SECOND for period in TRANSITIONS]),
    st.sampled_from([0, 5]),
    st.sampled_from([False, False, True]),
    st.builds(Layout, st.booleans(), st.booleans()),
    st.sampled_from(list(EVICTION_RELEASES.values())),
)
# Drawn whole: a few values of each kind are as good as all, and are drawn much faster.
TIMES = (None, SECOND, 2 * SECOND)
MEMORIES = [None, MemoryStats(), MemoryStats(50)] + [
    MemoryStats(left, used, None, time)
    for left, used, time in product((0, 99, 150, 1000), (0, 100), TIMES)
]
DISKS = [None, FilesystemStats(), FilesystemStats(50, None, 50, None)] + [
    FilesystemStats(left, size, free, size, time)
    for left, size, free, time in product((50, 150, 1000), (100, 1000), (50, 1000), TIMES)
]
PROCESSES = [None, ProcessStats(100)] + [
    ProcessStats(1000, running, time) for running, time in product((0, 850, 999, 1100), TIMES)
]
memories, disks = st.sampled_from(MEMORIES), st.sampled_from(DISKS)
nodes = st.builds(NodeStats, memories, memories, disks, disks, disks, st.sampled_from(PROCESSES))
POOL = [
    evictable("plain", memory="100"),
    evictable("low", memory="100", priority=-1),
    evictable("critical", priority=2_000_000_000, storage_limit="1"),
    evictable("static", source="file", volumes=[scratch(limit="1")]),
    evictable("bounded", volumes=[scratch(limit="50")], containers=[container(limit="50")]),
]
usages = st.sampled_from(
    [
        None,
        uses(),
        uses("150", processes=3, layer=disk("150", 7), logs=disk("0"), storage="150"),
        uses("50", processes=1, volumes={"scratch": disk("100", 2)}, storage="100"),
    ]
)
populations = st.lists(usages, min_size=len(POOL), max_size=len(POOL)).map(
    lambda used: dict(zip(POOL, used, strict=True))
)
rounds = st.builds(
    Input,
    st.sampled_from([10, 0, 20, 60]),
    st.one_of(nodes, nodes, nodes, st.none()),
    st.none() | nodes,
    st.one_of(populations, populations, st.just({})),
)
runs = st.builds(Run, configurations, st.lists(rounds, min_size=2, max_size=5))


@given(runs)
def test_a_sync_evicts_at_most_one_pod_for_pressure(run: Run) -> None:
    for sync in run.play():
        pressed = [each for each in sync.evictions if each.condition is not None]
        assert len(pressed) <= 1
        assert not pressed or sync.evictions == tuple(pressed)


@given(runs)
def test_critical_pods_are_never_evicted(run: Run) -> None:
    assert not any(each.pod.critical for sync in run.play() for each in sync.evictions)


def observed_pressures(rounds: Sequence[SyncResult]) -> Iterator[tuple[int, Pressure]]:
    """Return the times and pressures that were observed, without unmeasured syncs."""
    for sync in rounds:
        if sync.outcome is not SyncOutcome.UNMEASURED:
            for threshold in sync.state.first_observed_at:
                yield sync.input.now_ns, PRESSURES[threshold.signal]


@given(runs)
def test_a_pressure_is_reported_for_the_transition_period_and_no_longer(run: Run) -> None:
    rounds, period = run.play(), run.configuration.transition_ns
    for index, sync in enumerate(rounds):
        recently = {
            pressure
            for seen, pressure in observed_pressures(rounds[: index + 1])
            if sync.input.now_ns - seen < period
        }
        assert recently <= set(sync.state.pressures)
        if sync.outcome not in (SyncOutcome.UNMEASURED, SyncOutcome.REFUSED):
            assert recently == set(sync.state.pressures)


@given(
    st.integers(2, 300),
    st.lists(st.tuples(st.integers(1, 120), st.sampled_from([False, False, True])), min_size=2),
)
def test_a_pressure_does_not_flap_within_the_transition_period(
    period: int, moments: list[tuple[int, bool]]
) -> None:
    short, enough = "500Mi", "2Gi"
    limits = (bound("memory.available<1Gi"),)
    kubelet = Kubelet(resolve(EvictionConfig(limits, transition_ns=period * SECOND)))
    at, last = 0, None
    for later, is_short in moments:
        at += later
        last = at if is_short else last
        sync = kubelet.sync(at, node(memory=short if is_short else enough, at=at), {}, None)
        under_pressure = last is not None and at - last < period
        assert set(sync.state.pressures) == ({Pressure.MEMORY} if under_pressure else set())


@given(runs)
def test_no_pod_is_evicted_for_a_resource_above_its_threshold(run: Run) -> None:
    for sync in run.play():
        if sync.input.stats is None:
            assert not sync.evictions
            continue
        observations = observe(sync.input.stats.node)
        for threshold in sync.triggered:
            assert unresolved_thresholds([threshold], observations) == [threshold]
            assert threshold.grace_ns <= sync.input.now_ns - sync.state.first_observed_at[threshold]


@given(runs)
def test_the_same_measurements_evict_once(run: Run) -> None:
    for sync, seen in zip(run.play(), run.inputs, strict=True):
        if seen.stats is None or sync.outcome is SyncOutcome.REFUSED:
            continue
        measured = observe(seen.stats)
        if any(observation.time_ns is None for observation in measured.values()):
            continue
        again = Kubelet(sync.config)
        again.state = sync.state
        repeated = again.sync(10**6, seen.stats, seen.pods, seen.reclaimed)
        assert not repeated.triggered
        assert all(each.condition is None for each in repeated.evictions)


@given(runs)
def test_a_sync_depends_only_on_its_input(run: Run) -> None:
    assert run.play() == run.play()


@given(runs)
def test_a_node_with_plenty_of_everything_is_not_under_pressure(run: Run) -> None:
    plenty = 10**9
    memory = MemoryStats(plenty, 0)
    disk_left = FilesystemStats(plenty, plenty, plenty, plenty)
    stats = NodeStats(memory, memory, disk_left, disk_left, disk_left, ProcessStats(plenty, 0))
    calm = replace(run, inputs=[replace(each, stats=stats) for each in run.inputs])
    assert not met_thresholds(run.configuration.thresholds, observe(stats))
    assert not any(each.condition for sync in calm.play() for each in sync.evictions)
