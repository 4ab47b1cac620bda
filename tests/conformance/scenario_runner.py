"""Scenarios of controllers: their definition, their runs, and the comparison of two runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Final

from fakeapi import FakeCluster
from tests.builders import Document
from tests.conformance.clusters.controller_processes import Controllers, running
from tests.conformance.clusters.world import World, follow
from tests.conformance.objects import NAMESPACE_DOCUMENT
from tests.conformance.outcome import Normaliser, Step, outcome

_SHOWN_LINES: Final = 60


@dataclass(frozen=True, slots=True)
class Scenario:
    """``play`` runs once the controllers do, in a cluster with the objects that ``objects`` builds.

    ``run`` names the components of fakeapi's control plane.
    """

    play: Callable[[World], Awaitable[None]]
    objects: Callable[[], Sequence[Document]] = list
    run: str = "none"

    @property
    def name(self) -> str:
        """Its name."""
        return self.play.__name__


async def play(scenario: Scenario, controllers: Controllers, run: str) -> list[Step]:
    """Play a scenario in a process of fakeapi, and return its outcome."""
    with FakeCluster.as_process(run=scenario.run) as cluster:
        cluster.load((NAMESPACE_DOCUMENT, *scenario.objects()))
        async with follow(cluster) as world:
            async with running(controllers, cluster.url, run):
                await scenario.play(world)
            normaliser = Normaliser(world.owners, world.generated)
            return outcome(cluster.requests, world.moments, normaliser)


def differences(one: Sequence[Step], other: Sequence[Step]) -> list[str]:
    """Return the diff of two outcomes."""
    return list(unified_diff(_lines(one), _lines(other), lineterm="", n=0))[2:_SHOWN_LINES]


def _lines(steps: Sequence[Step]) -> list[str]:
    return [line for number, step in enumerate(steps) for line in step.lines(number)]
