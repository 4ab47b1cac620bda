"""Our ReplicaSet controller and the real one have the same outcome in each scenario."""

from __future__ import annotations

import pytest

from tests.conformance.clusters.controller_processes import OURS, Controllers
from tests.conformance.scenario_runner import Scenario, differences, play
from tests.conformance.scenarios import claiming, errors, scaling, victims

SCENARIOS = [*scaling.SCENARIOS, *victims.SCENARIOS, *claiming.SCENARIOS, *errors.SCENARIOS]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_both_controllers_have_the_same_outcome(
    scenario: Scenario, real_controllers: Controllers
) -> None:
    theirs = await play(scenario, real_controllers, "replicaset")
    ours = await play(scenario, OURS, "replicaset")
    assert not differences(theirs, ours)
