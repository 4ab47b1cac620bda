"""Runs of a scenario: one with a real kube-controller-manager, one with our components.

The real one comes first. A step of it is over once nothing changes for a while; ours then has to
reach the same outcome.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import partial
from pathlib import Path
from typing import Final

from tests.builders import Document
from tests.conformance.clusters.logged_process import logged
from tests.conformance.clusters.watched_cluster import WatchedCluster
from tests.conformance.objects import NAMESPACE_DOCUMENT
from tests.conformance.operators.cluster import operator_cluster
from tests.conformance.operators.kube_controller_manager import kube_controller_manager
from tests.conformance.workloads.outcome import outcome

QUIET_SECONDS: Final = 2.5
PATIENCE_SECONDS: Final = 15.0
OURS: Final = "kubelet,scheduler,gc,replicaset,deployment,job,statefulset,daemonset,endpointslice"
_THEIRS: Final = (
    *("deployment-controller", "replicaset-controller", "job-controller", "daemonset-controller"),
    *("statefulset-controller", "endpointslice-controller", "ttl-after-finished-controller"),
    "garbage-collector-controller",
)
_SHOWN_LINES: Final = 60
_CONTROLLERS: Final = f"--controllers={','.join(_THEIRS)}"

Settle = Callable[[], Awaitable[None]]
"""Ends a step of a scenario: waits for its outcome, and records or compares it."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """``play`` writes to a cluster step by step; ``nodes`` are changes of the three nodes."""

    play: Callable[[WatchedCluster, Settle], Awaitable[None]]
    nodes: tuple[tuple[str, Document], ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.play.__name__


@dataclass(slots=True)
class Recording:
    """Records the outcomes of steps."""

    world: WatchedCluster
    steps: list[list[str]] = field(default_factory=list)

    async def settle(self) -> None:
        """Record the outcome once it no longer changes."""
        while await self._changes(outcome(self.world)):
            pass
        self.steps.append(outcome(self.world))

    async def _changes(self, last: list[str]) -> bool:
        try:
            await self.world.until(lambda: outcome(self.world) != last, QUIET_SECONDS)
        except TimeoutError:
            return False
        return True


@dataclass(slots=True)
class Comparison:
    """Compares the outcomes of steps with recorded ones, up to the first that differs."""

    world: WatchedCluster
    recorded: list[list[str]]
    steps: int = 0
    differences: list[str] = field(default_factory=list)

    async def settle(self) -> None:
        """Wait for the recorded outcome, or note the differences if it does not come."""
        expected = self.recorded[self.steps]
        self.steps += 1
        if self.differences:
            return
        try:
            await self.world.until(lambda: outcome(self.world) == expected, PATIENCE_SECONDS)
        except TimeoutError:
            found = list(unified_diff(expected, outcome(self.world), lineterm="", n=0))[2:]
            self.differences = [f"step {self.steps}", *found[:_SHOWN_LINES]]


async def record(scenario: Scenario, program: Path, directory: Path) -> list[list[str]]:
    """Play a scenario with a real kube-controller-manager, and return the outcomes of its steps."""
    async with operator_cluster(directory, "kubelet,scheduler") as cluster:
        process = kube_controller_manager(cluster, program, _CONTROLLERS)
        async with logged(process), _prepared(cluster.world, scenario) as world:
            recording = Recording(world)
            await scenario.play(world, recording.settle)
    return recording.steps


async def differences(scenario: Scenario, recorded: list[list[str]], directory: Path) -> list[str]:
    """Play a scenario with our components, and return how their outcomes differ."""
    async with (
        operator_cluster(directory, OURS) as cluster,
        _prepared(cluster.world, scenario) as world,
    ):
        comparison = Comparison(world, recorded)
        await scenario.play(world, comparison.settle)
    return comparison.differences


@asynccontextmanager
async def _prepared(world: WatchedCluster, scenario: Scenario) -> AsyncIterator[WatchedCluster]:
    world.follow("ControllerRevision", "PersistentVolumeClaim")
    await world.create(NAMESPACE_DOCUMENT)
    for name, change in scenario.nodes:
        await world.until(partial(_exists, world, name))
        await world.patch("Node", name, change, namespace="")
    yield world


def _exists(world: WatchedCluster, node: str) -> bool:
    return world.get("Node", node, "") is not None
