"""A real kube-scheduler with ``reprieve serve`` as its extender does what it should."""

from __future__ import annotations

from typing import Final

import pytest

from tests.conformance.scheduling import (
    assumed_scenarios,
    crash_scenarios,
    device_scenarios,
    extender_scenarios,
    group_scenarios,
    policy_scenarios,
    preemption_scenarios,
    subset_scenarios,
    workload_scenarios,
)
from tests.conformance.scheduling.environment import SchedulingScenario, environment
from tests.conformance.scheduling.releases import scheduler
from tests.conformance.scheduling.servers import Opening

SCENARIOS: Final = [
    *preemption_scenarios.SCENARIOS,
    *extender_scenarios.SCENARIOS,
    *subset_scenarios.SCENARIOS,
]
GATED: Final = [
    *assumed_scenarios.SCENARIOS,
    *device_scenarios.SCENARIOS,
    *group_scenarios.SCENARIOS,
    *workload_scenarios.SCENARIOS,
]
"""Scenarios of feature gates that only the newest release has."""

ON_FAKEAPI: Final = (
    "a_pod_that_waits_for_its_volume_is_the_victim-cluster",
    "a_deferred_resize_preempts-cluster",
    "cpu_for_an_extended_resource-cluster",
    "cpu_for_a_claim-cluster",
    "a_gang_that_fits_only_by_preemption-cluster",
    "a_pod_preempts_a_whole_gang_on_its_node-cluster",
)
"""Those of them that run on fakeapi, too: one for each kind of write. All of them pass there."""


def _identifier(scenario: SchedulingScenario) -> str:
    return f"{scenario.name}-{scenario.setting.serving['search']}"


PAIRS: Final = [("fakeapi", "1.37"), ("fakeapi", "1.30"), ("real", "1.37")]
"""API servers, and the kube-schedulers that are at work there."""


@pytest.mark.parametrize(("opening", "release"), PAIRS, indirect=["opening"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_scheduling_with_the_extender(
    scenario: SchedulingScenario, opening: Opening, release: str
) -> None:
    async with environment(scheduler(release), release, scenario.setting, opening) as env:
        await scenario.play(env)


@pytest.mark.parametrize("opening", ["fakeapi"], indirect=True)
@pytest.mark.parametrize(
    "scenario",
    crash_scenarios.SCENARIOS,
    ids=lambda scenario: f"{scenario.name}-{scenario.setting.extender('').ignorable}",
)
async def test_scheduling_goes_on_after_a_crash(
    scenario: SchedulingScenario, opening: Opening
) -> None:
    async with environment(scheduler("1.37"), "1.37", scenario.setting, opening) as env:
        await scenario.play(env)


@pytest.mark.parametrize(
    ("scenario", "opening"),
    [
        *((scenario, "real") for scenario in GATED),
        *((scenario, "fakeapi") for scenario in GATED if _identifier(scenario) in ON_FAKEAPI),
    ],
    ids=lambda each: each if isinstance(each, str) else _identifier(each),
    indirect=["opening"],
)
async def test_scheduling_with_the_extender_behind_feature_gates(
    scenario: SchedulingScenario, opening: Opening
) -> None:
    async with environment(scheduler("1.37"), "1.37", scenario.setting, opening) as env:
        await scenario.play(env)


@pytest.mark.parametrize("opening", ["fakeapi"], indirect=True)
@pytest.mark.parametrize("scenario", policy_scenarios.SCENARIOS, ids=lambda scenario: scenario.name)
async def test_scheduling_by_a_policy(scenario: SchedulingScenario, opening: Opening) -> None:
    async with environment(scheduler("1.37"), "1.37", scenario.setting, opening) as env:
        await scenario.play(env)
