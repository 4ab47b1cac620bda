"""Drives the demo: creates its objects step by step; the control plane does the rest.

Each step starts with an action and ends when all its conditions are met. A step that does not
complete in time ends the demo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from extender.kube.api_error import ApiError
from extender.kube.client import PatchType
from extender.kube.resources import (
    NAMESPACES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    Resource,
)
from extender.kube.transport import TransportError
from fakeapi.controllers.spreading.copies import WORKLOAD_SPREADS
from fakeapi.controlplane.kubelet.shapes import SCRIPT
from fakeapi.demo.chapters import DemoStep, unmet_conditions, unplaced_pods
from fakeapi.demo.looking import ClusterObserver
from fakeapi.demo.news import describe_changes
from fakeapi.demo.screens import Screen
from fakeapi.demo.sights import ObservedState
from fakeapi.demo.staging import DemoCluster
from fakeapi.scenarios.loop import LoopScenario, key_of

POLL_SECONDS: Final = 0.5

_RESOURCES: Final[Mapping[str, Resource]] = {
    "Namespace": NAMESPACES,
    "Pod": PODS,
    "PodDisruptionBudget": POD_DISRUPTION_BUDGETS,
    "PriorityClass": PRIORITY_CLASSES,
    "ReplicaSet": REPLICA_SETS,
    "WorkloadSpread": WORKLOAD_SPREADS,
}

UnmetConditions = Callable[[ObservedState], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """The result: the last observed state, the last step, and its unmet conditions."""

    state: ObservedState
    step: DemoStep
    missing: tuple[str, ...] = ()


class DemoDriver:
    """Runs a scenario in a demo cluster, and shows it on a screen."""

    def __init__(self, cluster: DemoCluster, scenario: LoopScenario, screen: Screen) -> None:
        self._cluster = cluster
        self._scenario = scenario
        self._screen = screen
        self._observer = ClusterObserver(cluster, cluster.clock.monotonic())
        self._state = ObservedState()

    async def run(self) -> DemoOutcome:
        """Run all steps, or up to the first one that does not complete."""
        for chapter, deed in (
            (DemoStep.START, None),
            (DemoStep.FILLING, self._fill),
            (DemoStep.BURST, self._burst),
            (DemoStep.PRESSURE, self._leak),
        ):
            try:
                missing = await deed() if deed is not None else ()
                missing = missing or await self._until(chapter, self._unmet(chapter))
            except (ApiError, TransportError) as error:
                missing = (f"the API server says: {error}",)
            if missing:
                return DemoOutcome(self._state, chapter, missing)
        self._screen.show(DemoStep.END, self._state, ())
        return DemoOutcome(self._state, DemoStep.END)

    def _unmet(self, chapter: DemoStep) -> UnmetConditions:
        return lambda sight: unmet_conditions(chapter, sight, self._scenario)

    async def _until(self, chapter: DemoStep, lacking: UnmetConditions) -> tuple[str, ...]:
        """Poll until all conditions are met; return the unmet ones after the timeout."""
        clock = self._cluster.clock
        deadline = clock.monotonic() + self._cluster.step_timeout_seconds
        while True:
            sight = await self._observer.observe()
            self._screen.show(chapter, sight, describe_changes(self._state, sight, self._scenario))
            self._state = sight
            missing = lacking(sight)
            if not missing or clock.monotonic() >= deadline:
                return missing
            await clock.sleep(POLL_SECONDS)

    async def _fill(self) -> tuple[str, ...]:
        """Create workloads, each once the pods of the previous one have nodes."""
        await self._create(self._scenario.base_objects)
        for workload in self._scenario.workloads:
            await self._create((workload,))
            missing = await self._until(DemoStep.FILLING, self._unplaced(key_of(workload)))
            if missing:
                return missing
        return ()

    def _unplaced(self, workload: str) -> UnmetConditions:
        return lambda sight: unplaced_pods(workload, sight, self._scenario)

    async def _burst(self) -> tuple[str, ...]:
        self._observer.pods_before_burst = frozenset(pod.uid for pod in self._state.pods)
        await self._create(self._scenario.burst)
        return ()

    async def _leak(self) -> tuple[str, ...]:
        """Set the simulation script of one pod of the leaking workload."""
        body = orjson.dumps({"metadata": {"annotations": {SCRIPT: self._scenario.leak_script}}})
        for pod in self._state.pods_of(self._scenario.leaking_workload)[:1]:
            namespace, _, name = pod.key.partition("/")
            await self._cluster.client.patch(
                PODS.object(name, namespace), PatchType.MERGE, body, bytes
            )
        return ()

    async def _create(self, documents: Iterable[Mapping[str, Any]]) -> None:
        for document in documents:
            resource = _RESOURCES[document["kind"]]
            collection = resource.collection(document["metadata"].get("namespace", ""))
            await self._cluster.client.create(collection, orjson.dumps(document), bytes)
