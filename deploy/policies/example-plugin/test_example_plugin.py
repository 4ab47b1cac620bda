"""The cost and the guard: some values, and the laws that any decision with them obeys."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_plugin import LICENSES, least_revenue, licensed

from extender.config.preemption_policy import find_policy
from policies.plugins import CostPlugin, GuardPlugin
from policies.testing import check_plugin, check_policy, pod

TRAINING = pod("training", namespace="team-a", others={"nvidia.com/gpu": "8"})
SIMULATION = pod("simulation", annotations={LICENSES: "solver, simulator"})


def test_revenue() -> None:
    """A tenant pays for GPUs alone."""
    assert (least_revenue(TRAINING), least_revenue(SIMULATION)) == (24, 0)


def test_licenses() -> None:
    """A license is one of a list."""
    assert (licensed(TRAINING), licensed(SIMULATION)) == (False, True)


@pytest.mark.parametrize("plugin", [least_revenue, licensed])
def test_laws(plugin: CostPlugin | GuardPlugin) -> None:
    """Both are pure, and decisions with them obey the laws, on clusters of these pods."""
    check_plugin(plugin, [TRAINING, SIMULATION])


def test_policy() -> None:
    """The package is installed, and decisions by its policy obey the laws."""
    policy = find_policy(str(Path(__file__).with_name("policy.yaml")))
    check_policy(policy.default, [TRAINING, SIMULATION])
