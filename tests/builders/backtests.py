"""Results of backtests: of given runs, and of random ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random

from fakeapi.backtest.distribution import Distribution
from fakeapi.backtest.results import BacktestResults, LeftOut, UnitResult, WorkloadSummary
from fakeapi.backtest.statistics import (
    GroupStatistics,
    RunStatistics,
    SimulatedDecision,
    SimulatedVictim,
)

HOUR = 3600
SECOND_NS = 10**9
GPU = "nvidia.com/gpu"


def workload(name: str = "three-jobs") -> WorkloadSummary:
    """Return the summary of a small workload."""
    return WorkloadSummary(name, 2, 3, 3600 * SECOND_NS, {"cpu": 64_000, GPU: 8})


def results(
    runs: Mapping[str, Sequence[RunStatistics]], of: WorkloadSummary | None = None, missing: int = 0
) -> BacktestResults:
    """Return results of one segment, from runs by policy and in the order of seeds."""
    return BacktestResults(
        workload=of or workload(),
        policies=tuple(runs),
        seeds=max(map(len, runs.values()), default=0),
        segments=1,
        units=tuple(
            UnitResult(policy, seed, 0, run)
            for policy, known in runs.items()
            for seed, run in enumerate(known)
        ),
        missing=missing,
    )


def disrupted(count: int, group: str = "team/batch") -> RunStatistics:
    """Return a run with this number of disruptions, all of one group."""
    return RunStatistics(groups={group: GroupStatistics(submitted=count, disruptions=count)})


def victim(name: str, gpu_hours: int = 0, cpu_hours: int = 0) -> SimulatedVictim:
    """Return a victim of priority 10 that lost work."""
    lost = {GPU: gpu_hours * HOUR, "cpu": cpu_hours * HOUR * 1000}
    return SimulatedVictim(name, "team", 10, {r: n for r, n in lost.items() if n})


def decision(
    preemptor: str, node: str, *victims: SimulatedVictim, at_hours: int = 1, reason: str = ""
) -> SimulatedDecision:
    """Return a preemption on a node."""
    at_ns = at_hours * HOUR * SECOND_NS
    return SimulatedDecision(at_ns, preemptor, "team", 1000, node, victims, reason=reason)


def decided(*decisions: SimulatedDecision, made: int = 0) -> RunStatistics:
    """Return a run with these decisions, of more that were made."""
    return RunStatistics(preemptions=made or len(decisions), decisions=decisions)


def random_results(
    seed: int, policies: Sequence[str], seeds: int = 5, tenants: int = 6
) -> BacktestResults:
    """Return plausible results in two segments; each policy disrupts less than the one before."""
    rng = Random(seed)
    groups = [f"team-{i}/{of}" for i in range(tenants) for of in ("batch", "high", "production")]
    units = []
    for number in range(seeds):
        for segment in range(2):
            load = rng.uniform(0.8, 1.2)
            for place, policy in enumerate(policies):
                run = _random_run(rng, groups, load * 0.85**place)
                units.append(UnitResult(policy, number, segment, run))
    summary = WorkloadSummary(
        "openb-2023",
        1_523,
        8_152,
        13 * 86_400 * SECOND_NS,
        {"cpu": 107_018_000, "memory": 602 * 2**40, GPU: 6_212},
        ("Pods of one job are interchangeable.", "A pod runs as long as it ran in the trace."),
        (LeftOut("it has no duration", 12, "openb_pod_list.csv:817"),),
    )
    return BacktestResults(summary, tuple(policies), seeds, 2, tuple(units))


def _random_run(rng: Random, groups: Iterable[str], factor: float) -> RunStatistics:
    run = RunStatistics(duration_ns=86_400 * SECOND_NS)
    for name in groups:
        wait = 4_000 if name.endswith("batch") else 40
        queueing = Distribution()
        for _ in range(60):
            queueing.add(int(rng.expovariate(1 / (wait * factor)) * SECOND_NS))
        disruptions = int(rng.uniform(5, 60) * factor) if name.endswith("batch") else 0
        lost = {"cpu": disruptions * 30_000_000, GPU: disruptions * 9_000}
        finished = {"cpu": 4 * 10**10, GPU: 8_000_000}
        run.groups[name] = GroupStatistics(
            submitted=300,
            finished_pods=300,
            disruptions=disruptions,
            repeated=disruptions // 4,
            queueing=queueing,
            done={each: lost[each] + finished[each] for each in lost},
            finished=finished,
            lost=lost,
        )
        run.preemptions += disruptions
    run.violations = rng.randrange(12)
    run.cascades = int(run.preemptions * 0.1)
    run.refused = rng.randrange(2_000, 2_200)
    run.capacity = {"cpu": 10**12, "memory": 10**18, GPU: 5 * 10**8}
    run.allocated = {r: int(n * rng.uniform(0.7, 0.8)) for r, n in run.capacity.items()}
    run.fragmented = {r: int(n * 0.05 * factor) for r, n in run.capacity.items()}
    run.decisions = tuple(_random_decision(rng) for _ in range(30))
    return run


def _random_decision(rng: Random) -> SimulatedDecision:
    victims = tuple(
        victim(f"train-{rng.randrange(50)}-{i}", rng.randrange(40), rng.randrange(300))
        for i in range(rng.randrange(1, 6))
    )
    return decision(
        f"serve-{rng.randrange(40)}-0",
        f"node-{rng.randrange(1_523):04}",
        *victims,
        at_hours=rng.randrange(1, 300),
        reason=rng.choice(("lowest lost work", "fewest PDB violations", "")),
    )
