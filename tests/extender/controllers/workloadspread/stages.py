"""A stage in which a WorkloadSpread controller is the only client that writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from extender.kube.rest.resources import PODS
from fakeapi import VirtualCluster
from fakeapi.testing.faults import Fault
from policies.workloadspread.quirks import quirks_of_mode
from tests.builders import Document
from tests.builders.replicas import a_pod
from tests.builders.workloadspread import UNSCHEDULABLE, injected
from tests.extender.controllers.workloadspread.killable_controller import AGENT, Process
from tests.stage import SPREADS, Stage


class ControllerStage(Stage):
    """A stage with a WorkloadSpread controller, its writes and their results."""

    def writes(self) -> list[tuple[str, str, int]]:
        """Return the controller's writes: method, object, and status of the response."""
        return [
            (each.method, each.path.partition("/default/")[2], each.status)
            for each in self.cluster.requests
            if each.user_agent == AGENT and each.method != "GET" and "/events" not in each.path
        ]

    def statuses(self, method: str, ending: str = "") -> list[int]:
        """Return the statuses of the responses to the controller's writes of some objects."""
        return [
            status for how, path, status in self.writes() if how == method and path.endswith(ending)
        ]

    async def annotations(self) -> dict[str, Document]:
        """Return the annotations of all pods, by name."""
        metadata = [each["metadata"] for each in await self.all(PODS)]
        return {each["name"]: each.get("annotations", {}) for each in metadata}

    async def counts_after(self, seconds: float = 5.0) -> list[tuple[int, int]]:
        """Advance the clock, and return replicas and missing replicas of each subset's status."""
        await self.passes(seconds)
        entries = (await self.status_of(SPREADS)).get("subsetStatuses", ())
        return [(each["replicas"], each["missingReplicas"]) for each in entries]


@asynccontextmanager
async def controller_stage(
    *objects: Document, faults: tuple[Fault, ...] = (), quirks: str = "fixed"
) -> AsyncIterator[ControllerStage]:
    """Open a stage with these objects, and a controller whose requests meet faults."""
    async with VirtualCluster(run="none") as cluster:
        stage = ControllerStage(cluster)
        stage.load(*objects)
        stage.plan_faults(*faults, agent=AGENT)
        process = Process(cluster, quirks=quirks_of_mode(quirks))
        try:
            yield stage
        finally:
            await process.kill()


def stuck_pod(name: str) -> Document:
    """Build a pod that has been unschedulable in the first subset for a minute."""
    return a_pod(
        name,
        "web",
        phase="Pending",
        conditions=[UNSCHEDULABLE],
        annotations=injected("a"),
        creationTimestamp="2025-12-31T23:59:00Z",
    )
