"""Our controllers of workloads and a real kube-controller-manager have the same outcomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.operators import kube_controller_manager
from tests.conformance.scheduling.releases import built
from tests.conformance.workloads import deployments, jobs, services, stateful_sets
from tests.conformance.workloads.runs import Scenario, differences, record

SCENARIOS = (
    *deployments.SCENARIOS,
    *jobs.SCENARIOS,
    *stateful_sets.SCENARIOS,
    *services.SCENARIOS,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_both_have_the_same_outcomes(scenario: Scenario, tmp_path: Path) -> None:
    recorded = await record(scenario, built(kube_controller_manager.PROGRAM), tmp_path)
    found = await differences(scenario, recorded, tmp_path)
    assert not found, "\n".join(found)
