"""Drives the demo: creates its objects step by step; the control plane does the rest.

Each step starts with an action and ends when all its conditions are met, as list requests for pods,
nodes, Events and webhook configurations show them. A step that does not complete in time ends the
demo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from extender.controllers.webhooks.registration import MUTATING, NAME
from extender.controllers.workloadspread.spread_cache import WORKLOAD_SPREADS
from extender.kube.controller_runtime.event_recorder import EVENTS
from extender.kube.decoders.object_meta import decode_partial
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import PatchType
from extender.kube.rest.resources import (
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    Resource,
)
from extender.kube.rest.transport import TransportError
from fakeapi.controlplane.kubelet.types import SCRIPT
from fakeapi.demo.environment import DemoCluster
from fakeapi.demo.event_feed import describe_changes
from fakeapi.demo.observed_state import ObservedState, read_event, read_node, read_pod
from fakeapi.demo.output import Screen
from fakeapi.demo.scenarios.preemption_story import LoopScenario, key_of
from fakeapi.demo.steps import DemoStep, unmet_conditions, unplaced_pods


@dataclass(slots=True)
class ClusterObserver:
    """Reads the state of a demo cluster.

    ``pods_before_burst`` are the UIDs of the pods that existed before the burst.
    """

    cluster: DemoCluster
    began: float
    pods_before_burst: frozenset[str] = frozenset()

    async def observe(self) -> ObservedState:
        """Return the current state of the cluster. Raises ApiError, TransportError."""
        client = self.cluster.client
        pods = await client.list(PODS, read_pod)
        nodes = await client.list(NODES, read_node)
        events = await client.list(EVENTS, read_event)
        webhooks = await client.list(MUTATING, decode_partial)
        return ObservedState(
            self.cluster.clock.monotonic() - self.began,
            tuple(pods.items),
            tuple(sorted(nodes.items, key=lambda node: node.name)),
            tuple(events.items),
            tuple(self.cluster.collector.decisions),
            tuple(self.cluster.trace),
            self.pods_before_burst,
            NAME in [each.metadata.name for each in webhooks.items],
        )


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
        for step, action in (
            (DemoStep.START, None),
            (DemoStep.FILLING, self._fill),
            (DemoStep.BURST, self._burst),
            (DemoStep.PRESSURE, self._leak),
        ):
            try:
                missing = await action() if action is not None else ()
                missing = missing or await self._until(step, self._unmet(step))
            except (ApiError, TransportError) as error:
                missing = (f"the API server returned an error: {error}",)
            if missing:
                return DemoOutcome(self._state, step, missing)
        self._screen.show(DemoStep.END, self._state, ())
        return DemoOutcome(self._state, DemoStep.END)

    def _unmet(self, step: DemoStep) -> UnmetConditions:
        return lambda state: unmet_conditions(step, state, self._scenario)

    async def _until(self, step: DemoStep, lacking: UnmetConditions) -> tuple[str, ...]:
        """Poll until all conditions are met; return the unmet ones after the timeout."""
        clock = self._cluster.clock
        deadline = clock.monotonic() + self._cluster.step_timeout_seconds
        while True:
            state = await self._observer.observe()
            self._screen.show(step, state, describe_changes(self._state, state, self._scenario))
            self._state = state
            missing = lacking(state)
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
        return lambda state: unplaced_pods(workload, state, self._scenario)

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
