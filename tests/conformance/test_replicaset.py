"""Our ReplicaSet controller and the real one do the same in the same world."""

from __future__ import annotations

import pytest

from tests.conformance.controller_processes import OURS, Contender
from tests.conformance.scenario_runner import differences, play
from tests.conformance.scenarios import claiming, errors, scaling, victims
from tests.conformance.scenarios.scenario import Scenario

SCENARIOS = [
    *scaling.SCENARIOS,
    *victims.SCENARIOS,
    *claiming.SCENARIOS,
    *errors.SCENARIOS,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_the_same_comes_of_it(scenario: Scenario, real_controllers: Contender) -> None:
    theirs = await play(scenario, real_controllers, "replicaset")
    ours = await play(scenario, OURS, "replicaset")
    assert not differences(theirs, ours)
