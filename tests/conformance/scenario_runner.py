"""A scenario played with one of the compared processes, in a world of its own."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff
from typing import Final

from fakeapi import FakeCluster
from tests.conformance.controller_processes import Contender, running
from tests.conformance.objects import NAMESPACE
from tests.conformance.outcome import Normaliser, Step, outcome
from tests.conformance.scenarios.scenario import Scenario
from tests.conformance.world import world

_SHOWN_LINES: Final = 60


async def play(scenario: Scenario, contender: Contender, controllers: str) -> list[Step]:
    """Play a scenario in a process of fakeapi, and return its outcome."""
    namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": NAMESPACE}}
    with FakeCluster.as_process(run=scenario.run) as cluster:
        cluster.load((namespace, *scenario.objects()))
        async with world(cluster) as there:
            async with running(contender, cluster.url, controllers):
                await scenario.play(there)
            normaliser = Normaliser(there.owners, there.generated)
            return outcome(cluster.requests, there.moments, normaliser)


def told(steps: Sequence[Step]) -> list[str]:
    """Write an outcome down, line by line."""
    return [line for number, step in enumerate(steps) for line in step.lines(number)]


def differences(one: Sequence[Step], other: Sequence[Step]) -> list[str]:
    """Return the diff of two outcomes."""
    return list(unified_diff(told(one), told(other), lineterm="", n=0))[2:_SHOWN_LINES]
