"""Scenarios: the round of a kubelet in each step, and the pods that it admits after it.

Clocks start at 0. Evicted pods stay in the scenario, as if the eviction had not been carried out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

from policies.eviction.conditions import admit
from policies.eviction.configuration import EvictionConfig, resolve
from policies.eviction.deciding import (
    SyncInput,
    SyncOutcome,
    SyncResult,
    finish_after_reclaim,
    synchronize,
)
from policies.eviction.filesystems import ReclaimAction
from policies.eviction.hysteresis import ManagerState
from policies.eviction.pods import EvictablePod
from policies.eviction.stats import Summary


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """One step: the time that passes, the stats, and the pods from then on."""

    advance_ns: int
    summary: Summary | None
    after_reclaim: Summary | None
    pods: tuple[EvictablePod, ...] | None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A kubelet's configuration, its pods, the pods to admit, and the steps."""

    config: EvictionConfig
    pods: tuple[EvictablePod, ...]
    to_admit: tuple[EvictablePod, ...]
    steps: tuple[ScenarioStep, ...]


@dataclass(frozen=True, slots=True)
class ScenarioStepResult:
    """The result of a step: the round, the reclaim actions, and the admission of pods after it."""

    sync: SyncResult
    reclaimed: tuple[ReclaimAction, ...]
    admitted: tuple[bool, ...]


class EvictedDocument(TypedDict):
    """A pod that is evicted in a step."""

    pod: str
    gracePeriodSeconds: int
    message: str
    disruptionTarget: bool


class ReclaimDocument(TypedDict):
    """The reclaim actions of the node in a step."""

    imageGC: bool
    containerGC: bool


class _Round(TypedDict):
    nodeConditions: list[str]
    evicted: list[EvictedDocument]
    admit: list[bool]
    nodeReclaim: ReclaimDocument


class ScenarioStepDocument(_Round, total=False):
    """The result of one step; ``error`` is only present if it failed."""

    error: str


class ScenarioDocument(TypedDict):
    """The output of ``explain evict --scenario``."""

    steps: list[ScenarioStepDocument]


def run_scenario(scenario: Scenario) -> list[ScenarioStepResult]:
    """Run all steps."""
    return list(_run_steps(scenario))


def scenario_document(results: Sequence[ScenarioStepResult]) -> ScenarioDocument:
    """Return the JSON document of a scenario."""
    return {"steps": [_step_document(each) for each in results]}


def _run_steps(scenario: Scenario) -> Iterator[ScenarioStepResult]:
    plan, state, now_ns, pods = resolve(scenario.config), ManagerState(), 0, scenario.pods
    for step in scenario.steps:
        now_ns += step.advance_ns
        pods = pods if step.pods is None else step.pods
        sync = synchronize(plan, state, SyncInput(now_ns, pods, step.summary))
        reclaimed = sync.reclaim
        if reclaimed:
            sync = finish_after_reclaim(sync, step.after_reclaim or step.summary)
        state = sync.state
        admitted = tuple(admit(pod, state.pressures).admitted for pod in scenario.to_admit)
        yield ScenarioStepResult(sync, reclaimed, admitted)


def _step_document(played: ScenarioStepResult) -> ScenarioStepDocument:
    sync = played.sync
    document: ScenarioStepDocument = {
        "nodeConditions": list(sync.state.pressures),
        "evicted": [
            {
                "pod": each.pod.name,
                "gracePeriodSeconds": each.grace_seconds,
                "message": each.message,
                "disruptionTarget": each.condition is not None,
            }
            for each in sync.evictions
        ],
        "admit": list(played.admitted),
        "nodeReclaim": {
            "imageGC": ReclaimAction.IMAGES in played.reclaimed,
            "containerGC": ReclaimAction.CONTAINERS in played.reclaimed,
        },
    }
    if sync.outcome is SyncOutcome.REFUSED:
        document["error"] = sync.error
    return document
