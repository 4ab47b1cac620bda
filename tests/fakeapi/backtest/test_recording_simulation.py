"""Recordings under a policy: the default one reproduces what a real kube-scheduler decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.config.preemption_policy import read_policy_source
from extender.recording.files import read_recording
from fakeapi.backtest.simulation.recording_simulation import RecordedPlan, simulate_recording
from fakeapi.backtest.simulation.simulated_scheduler import STOCK, SimulatedPolicy
from fakeapi.backtest.statistics import RunStatistics, conservation_error
from tests.properties.sampling import seeds

FILE = Path(__file__).parents[2] / "recorded" / "preemption.jsonl.gz"
RECORDED = read_recording(str(FILE))
POLICIES = [
    SimulatedPolicy(STOCK, None),
    SimulatedPolicy("kube-scheduler", read_policy_source("kube-scheduler")),
]


def preempted() -> set[tuple[str, str]]:
    """Return the recorded victims: namespace/name, and the node."""
    found = set()
    for event in RECORDED.events:
        if event.resource == "pods" and event.is_object_event:
            pod = event.document()
            conditions = pod.get("status", {}).get("conditions", [])
            if any(each.get("reason") == "PreemptionByScheduler" for each in conditions):
                found.add((event.key, pod["spec"]["nodeName"]))
    return found


def victims(statistics: RunStatistics) -> set[tuple[str, str]]:
    return {
        (f"{victim.tenant}/{victim.name}", decision.node)
        for decision in statistics.decisions
        for victim in decision.victims
    }


@pytest.mark.parametrize("policy", POLICIES, ids=lambda each: each.name)
@pytest.mark.parametrize("seed", seeds(1, 3))
def test_the_recorded_victims_are_chosen_again(policy: SimulatedPolicy, seed: int) -> None:
    found = simulate_recording(RecordedPlan(RECORDED, policy, seed, upstream="1.37"))
    assert conservation_error(found) == ""
    assert (found.preemptions, found.violations) == (5, 0)
    assert victims(found) == preempted()
    assert sum(group.disruptions for group in found.groups.values()) == 6
