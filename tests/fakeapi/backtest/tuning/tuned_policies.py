"""Policies to tune, and backtests of them whose results are a function of the policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from extender.config.policy_file import PolicyFile
from extender.config.preemption_policy import PolicySource, decode_policy
from fakeapi.backtest.results import BacktestResults, UnitResult
from fakeapi.backtest.simulation.simulated_scheduler import SimulatedPolicy
from fakeapi.backtest.statistics import GroupStatistics, RunStatistics
from fakeapi.backtest.tuning.objectives import parse_objectives
from fakeapi.backtest.tuning.search import StoppedError
from fakeapi.backtest.tuning.tuning import TuningPlan
from tests.builders.backtests import workload

HEAD = "apiVersion: reprieve.dev/v1alpha1\nkind: PreemptionPolicy\nmetadata: {name: spare}\n"
TWO_RULES = """rules:
- name: web
  preemptors: {labels: {matchLabels: {app: web}}}
  guards:
    maxLostWork: {amount: 4, per: hours}
    protect: [{name: databases, labels: {matchLabels: {role: db}}}]
  candidates: [fewest PDB violations, least lost work, most restarts]
- name: all
  guards: {pdb: strict, minRuntime: [{for: 30m}]}
  lostWork: {weights: {nvidia.com/gpu: 1, cpu: 0.02, memory: 0.001}, checkpoint: a.b/saved}
  victims: [earliest start, fewest restarts]
"""
CHEAPEST = """rules:
- name: all
  guards: {limits: [{lostWork: {amount: 1, per: hours}, per: 1h}]}
  victims: {strategy: cheapest, by: least lost work}
  candidates: [fewest victims, least cascade]
"""
BUILT_IN = "kube-scheduler"
SOURCES = {
    BUILT_IN: PolicySource(BUILT_IN),
    "two-rules": PolicySource("two-rules.yaml", HEAD + TWO_RULES),
    "cheapest": PolicySource("cheapest.yaml", HEAD + CHEAPEST),
}


def read(name: str) -> PolicyFile:
    return decode_policy(SOURCES[name])


def plan(
    *minimize: str,
    maximize: Sequence[str] = (),
    base: str = BUILT_IN,
    trials: int = 40,
    seed: int = 1,
) -> TuningPlan:
    """Return a plan with two training segments and one held-out segment."""
    objectives = parse_objectives(minimize, maximize, workload())
    return TuningPlan(
        SimulatedPolicy(base, SOURCES[base]), read(base), objectives, 3, 1, trials, seed
    )


Outcome = Callable[[PolicyFile, int, int], tuple[int, int]]
"""Disruptions and finished pods, by policy, seed and segment."""


@dataclass
class FakeBacktest:
    """Counts what an outcome states; ``simulated`` are the policies and segments in order.

    After ``stops_after`` calls, the user stops it.
    """

    outcome: Outcome
    seeds: int = 3
    stops_after: int = 1000
    simulated: list[tuple[str, range]] = field(default_factory=list)
    calls: int = 0

    def __call__(self, policies: Sequence[SimulatedPolicy], segments: range) -> BacktestResults:
        if self.calls >= self.stops_after:
            raise StoppedError
        self.calls += 1
        self.simulated += [(each.name, segments) for each in policies]
        files = {each.name: _file(each) for each in policies}
        units = tuple(
            UnitResult(name, seed, segment, self._run(file, seed, segment))
            for name, file in files.items()
            for seed in range(self.seeds)
            for segment in segments
        )
        return BacktestResults(workload(), tuple(files), self.seeds, len(segments), units)

    def _run(self, policy: PolicyFile, seed: int, segment: int) -> RunStatistics:
        disruptions, finished = self.outcome(policy, seed, segment)
        group = GroupStatistics(disruptions=disruptions, finished_pods=finished)
        return RunStatistics(groups={"team/batch": group})


def _file(policy: SimulatedPolicy) -> PolicyFile:
    assert policy.source is not None
    return decode_policy(policy.source)
