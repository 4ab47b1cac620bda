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
from fakeapi.controllers.spreading.copies import SPREADS
from fakeapi.controlplane.kubelet.shapes import SCRIPT
from fakeapi.demo.chapters import Chapter, lacks, unplaced
from fakeapi.demo.looking import Lookout
from fakeapi.demo.news import news
from fakeapi.demo.screens import Screen
from fakeapi.demo.sights import Sight
from fakeapi.demo.staging import Stage
from fakeapi.scenarios.loop import Story, key_of

LOOK_SECONDS: Final = 0.5

_RESOURCES: Final[Mapping[str, Resource]] = {
    "Namespace": NAMESPACES,
    "Pod": PODS,
    "PodDisruptionBudget": POD_DISRUPTION_BUDGETS,
    "PriorityClass": PRIORITY_CLASSES,
    "ReplicaSet": REPLICA_SETS,
    "WorkloadSpread": SPREADS,
}

Lacking = Callable[[Sight], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result: the last observed state, the last step, and its unmet conditions."""

    sight: Sight
    chapter: Chapter
    missing: tuple[str, ...] = ()


class Director:
    """Runs a scenario in a demo cluster, and shows it on a screen."""

    def __init__(self, stage: Stage, story: Story, screen: Screen) -> None:
        self._stage = stage
        self._story = story
        self._screen = screen
        self._lookout = Lookout(stage, stage.clock.monotonic())
        self._sight = Sight()

    async def play(self) -> Outcome:
        """Run all steps, or up to the first one that does not complete."""
        for chapter, deed in (
            (Chapter.START, None),
            (Chapter.FILLING, self._fill),
            (Chapter.BURST, self._burst),
            (Chapter.PRESSURE, self._leak),
        ):
            try:
                missing = await deed() if deed is not None else ()
                missing = missing or await self._until(chapter, self._lacks(chapter))
            except (ApiError, TransportError) as error:
                missing = (f"the API server says: {error}",)
            if missing:
                return Outcome(self._sight, chapter, missing)
        self._screen.show(Chapter.END, self._sight, ())
        return Outcome(self._sight, Chapter.END)

    def _lacks(self, chapter: Chapter) -> Lacking:
        return lambda sight: lacks(chapter, sight, self._story)

    async def _until(self, chapter: Chapter, lacking: Lacking) -> tuple[str, ...]:
        """Poll until all conditions are met; return the unmet ones after the timeout."""
        clock = self._stage.clock
        deadline = clock.monotonic() + self._stage.patience_seconds
        while True:
            sight = await self._lookout.look()
            self._screen.show(chapter, sight, news(self._sight, sight, self._story))
            self._sight = sight
            missing = lacking(sight)
            if not missing or clock.monotonic() >= deadline:
                return missing
            await clock.sleep(LOOK_SECONDS)

    async def _fill(self) -> tuple[str, ...]:
        """Create workloads, each once the pods of the previous one have nodes."""
        await self._create(self._story.setting)
        for workload in self._story.workloads:
            await self._create((workload,))
            missing = await self._until(Chapter.FILLING, self._unplaced(key_of(workload)))
            if missing:
                return missing
        return ()

    def _unplaced(self, workload: str) -> Lacking:
        return lambda sight: unplaced(workload, sight, self._story)

    async def _burst(self) -> tuple[str, ...]:
        self._lookout.before = frozenset(pod.uid for pod in self._sight.pods)
        await self._create(self._story.burst)
        return ()

    async def _leak(self) -> tuple[str, ...]:
        """Set the simulation script of one pod of the leaking workload."""
        body = orjson.dumps({"metadata": {"annotations": {SCRIPT: self._story.leak}}})
        for pod in self._sight.pods_of(self._story.leaking)[:1]:
            namespace, _, name = pod.key.partition("/")
            await self._stage.client.patch(
                PODS.object(name, namespace), PatchType.MERGE, body, bytes
            )
        return ()

    async def _create(self, documents: Iterable[Mapping[str, Any]]) -> None:
        for document in documents:
            resource = _RESOURCES[document["kind"]]
            collection = resource.collection(document["metadata"].get("namespace", ""))
            await self._stage.client.create(collection, orjson.dumps(document), bytes)
