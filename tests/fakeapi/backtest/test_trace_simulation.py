"""Simulated traces: who is preempted, what is lost, and that nothing disappears."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.config.preemption_policy import PolicySource, read_policy_source
from fakeapi.backtest.simulation.simulated_scheduler import STOCK, SimulatedPolicy
from fakeapi.backtest.simulation.trace_simulation import SimulationPlan, simulate
from fakeapi.backtest.statistics import GroupStatistics, RunStatistics, conservation_error
from fakeapi.backtest.traces.formats import open_trace
from fakeapi.backtest.traces.node_lists import make_nodes
from fakeapi.backtest.traces.trace import Trace
from tests.fakeapi.backtest.traces.trace_files import GENERIC, GIB, SECOND, csv_text, write
from tests.properties.sampling import seeds

STOCK_POLICY = SimulatedPolicy(STOCK, None)
DEFAULT_POLICY = SimulatedPolicy("kube-scheduler", read_policy_source("kube-scheduler"))
NO_DELAY = 0


def trace(directory: Path, *changes: dict[str, str], nodes: int = 1) -> Trace:
    """Return a trace of jobs that need a whole node each, unless changed, on nodes of 8 CPUs."""
    whole = GENERIC | {"cpu": "8"}
    rows = [whole | {"name": f"job-{i}"} | change for i, change in enumerate(changes)]
    on = make_nodes("node", nodes, {"cpu": 8_000, "memory": 64 * GIB})
    return open_trace(write(directory, csv_text(*rows)), nodes=on)


def run(
    of: Trace, policy: SimulatedPolicy = STOCK_POLICY, seed: int = 0, jitter_ns: int = NO_DELAY
) -> RunStatistics:
    statistics = simulate(SimulationPlan(of, policy, seed, jitter_ns=jitter_ns))
    assert conservation_error(statistics) == ""
    return statistics


def pods(statistics: RunStatistics, group: str) -> tuple[int, int, int, int]:
    """Return the pods of a group: submitted, finished, running and pending."""
    found = statistics.groups[group]
    return found.submitted, found.finished_pods, found.running, found.pending


BATCH = {"name": "batch", "priority": "0", "submit": "0", "duration": "1000"}
URGENT = {"name": "urgent", "priority": "100", "submit": "600", "duration": "50"}
LOW = "team/priority-0"
HIGH = "team/priority-100"


@pytest.mark.parametrize(
    ("checkpoint", "lost_seconds"),
    [
        pytest.param("", 600, id="without checkpoints all work is lost"),
        pytest.param("250", 100, id="work since the last checkpoint is lost"),
        pytest.param("0", 0, id="a service loses none"),
    ],
)
@pytest.mark.parametrize("policy", [STOCK_POLICY, DEFAULT_POLICY], ids=lambda each: each.name)
def test_a_preempted_pod_loses_its_work_and_starts_again(
    tmp_path: Path, policy: SimulatedPolicy, checkpoint: str, lost_seconds: int
) -> None:
    found = run(trace(tmp_path, BATCH | {"checkpoint": checkpoint}, URGENT), policy)
    assert (pods(found, LOW), pods(found, HIGH)) == ((1, 1, 0, 0), (1, 1, 0, 0))
    batch = found.groups[LOW]
    assert (found.preemptions, batch.disruptions, batch.repeated) == (1, 1, 0)
    (decision,) = found.decisions
    (victim,) = decision.victims
    assert (decision.preemptor, decision.node, victim.name) == ("urgent", "node-0", "batch")
    # A container starts within two seconds after its pod was created.
    lost = batch.lost["cpu"] / 8_000
    assert lost_seconds - 2 <= lost <= lost_seconds
    assert batch.finished["cpu"] == 1000 * 8_000
    assert decision.lost("cpu") == batch.lost["cpu"]


LEAST_LOST_WORK = """\
apiVersion: reprieve.dev/v1alpha1
kind: PreemptionPolicy
metadata: {name: least-lost-work}
rules:
- name: all
  lostWork: {weights: {cpu: 1}, checkpoint: example.com/saved}
  candidates: [least lost work]
"""


@pytest.mark.parametrize(
    ("checkpoint", "spared"),
    [
        pytest.param("", "early", id="the one that started last is stopped"),
        pytest.param("590", "late", id="the one that has just saved its work is stopped"),
    ],
)
def test_a_policy_reads_when_a_pod_has_saved_its_work(
    tmp_path: Path, checkpoint: str, spared: str
) -> None:
    policy = SimulatedPolicy("least", PolicySource("least", LEAST_LOST_WORK))
    early = BATCH | {"name": "early", "checkpoint": checkpoint}
    late = BATCH | {"name": "late", "submit": "500"}
    on = trace(tmp_path, early, late, URGENT | {"submit": "600"}, nodes=2)
    (decision,) = run(on, policy).decisions
    assert {victim.name for victim in decision.victims} == {"early", "late"} - {spared}


def test_a_node_with_little_memory_evicts_no_pod(tmp_path: Path) -> None:
    small = make_nodes("node", 1, {"cpu": 8_000, "memory": GIB // 4})
    rows = csv_text(GENERIC | BATCH | {"cpu": "8", "memory": str(GIB // 8)})
    found = run(open_trace(write(tmp_path, rows), nodes=small))
    assert pods(found, LOW) == (1, 1, 0, 0)
    assert found.groups[LOW].disruptions == 0


def test_a_replacement_that_preempts_is_a_cascade(tmp_path: Path) -> None:
    """The urgent job stops the batch job, which then stops the scavenger on the other node."""
    scavenger = BATCH | {"name": "scavenger", "priority": "-10"}
    found = run(trace(tmp_path, BATCH, scavenger, URGENT, nodes=2))
    assert found.preemptions == found.groups["team/priority-minus-10"].disruptions == 1
    low = {"name": "low", "priority": "-10", "submit": "0", "duration": "1000", "cpu": "4"}
    needs_all = URGENT | {"name": "needs-all", "cpu": "8"}
    on = trace(tmp_path, BATCH | {"cpu": "5"}, low | {"cpu": "5"}, needs_all, nodes=2)
    assert run(on).preemptions == 1


def test_a_pod_that_nobody_makes_room_for_waits(tmp_path: Path) -> None:
    found = run(trace(tmp_path, BATCH | {"duration": "5000"}, URGENT | {"priority": "0"}))
    assert found.preemptions == 0
    assert found.refused >= 1
    (waited,) = (found.groups[LOW].queueing.quantile(1.0),)
    assert waited == pytest.approx(5000 - 600, rel=0.02)


def test_pods_that_have_not_finished_are_counted_where_they_are(tmp_path: Path) -> None:
    day = 24 * 3600
    long = BATCH | {"duration": str(3 * day)}
    found = run(trace(tmp_path, long, long | {"name": "next"}))
    assert pods(found, LOW) == (2, 0, 1, 1)
    kept = found.groups[LOW].kept["cpu"] / 8_000
    assert kept == pytest.approx(day, abs=5)


def test_each_pod_of_a_job_finishes_by_itself(tmp_path: Path) -> None:
    found = run(trace(tmp_path, BATCH | {"pods": "3", "cpu": "4"}))
    assert pods(found, LOW) == (3, 3, 0, 0)
    assert found.allocated["cpu"] == pytest.approx(3 * 1000 * 4_000, rel=0.02)


def test_what_is_fragmented_cannot_be_used(tmp_path: Path) -> None:
    """Half of a node is free, and all that comes needs a whole one."""
    small = BATCH | {"name": "small", "cpu": "4", "duration": "40000"}
    big = [BATCH | {"name": f"big-{i}", "submit": "1", "duration": "1"} for i in range(9)]
    found = run(trace(tmp_path, small, *big))
    free = found.capacity["cpu"] - found.allocated["cpu"]
    assert 0.3 * free < found.fragmented["cpu"] < 0.95 * free


WORKLOADS = [f"synthetic:nodes=8,pods=60,days=1,seed={seed},load=1.4" for seed in (1, 2)]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_equal_seeds_have_equal_courses(workload: str) -> None:
    of = open_trace(workload)
    first, again = (run(of, DEFAULT_POLICY, seed=5, jitter_ns=10 * SECOND) for _ in range(2))
    assert first == again
    assert run(of, DEFAULT_POLICY, seed=6, jitter_ns=10 * SECOND).digest != first.digest


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("seed", seeds(1, 5))
def test_the_default_policy_is_kube_schedulers(workload: str, seed: int) -> None:
    """On so small a cluster kube-scheduler looks at every node, too."""
    of = open_trace(workload)
    alone, extended = run(of, STOCK_POLICY, seed), run(of, DEFAULT_POLICY, seed)
    assert alone.preemptions
    assert _disruptions(alone) == _disruptions(extended)
    assert alone.digest == extended.digest


def _disruptions(statistics: RunStatistics) -> dict[str, int]:
    def count(group: GroupStatistics) -> int:
        return group.disruptions

    return {name: count(group) for name, group in statistics.groups.items()}
