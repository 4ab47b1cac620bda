"""Scenarios: the round of a kubelet in each step, and the pods that it admits after it.

Clocks start at 0. Evicted pods stay in the scenario, as if the eviction had not been carried out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

from policies.eviction.conditions import admit
from policies.eviction.configuration import Configuration, planned
from policies.eviction.deciding import Outcome, Sample, Sync, settle, synchronize
from policies.eviction.filesystems import Reclaim
from policies.eviction.hysteresis import State
from policies.eviction.pods import EvictablePod
from policies.eviction.stats import Summary


@dataclass(frozen=True, slots=True)
class Step:
    """One step: the time that passes, the stats, and the pods from then on."""

    advance_ns: int
    summary: Summary | None
    after_reclaim: Summary | None
    pods: tuple[EvictablePod, ...] | None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A kubelet's configuration, its pods, the pods to admit, and the steps."""

    configuration: Configuration
    pods: tuple[EvictablePod, ...]
    to_admit: tuple[EvictablePod, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Played:
    """The result of a step: the round, the reclaim actions, and the admission of pods after it."""

    sync: Sync
    reclaimed: tuple[Reclaim, ...]
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


class StepDocument(_Round, total=False):
    """The result of one step; ``error`` is only present if it failed."""

    error: str


class ScenarioDocument(TypedDict):
    """The output of ``explain evict --scenario``."""

    steps: list[StepDocument]


def play_scenario(scenario: Scenario) -> list[Played]:
    """Run all steps."""
    return list(_played(scenario))


def scenario_document(played: Sequence[Played]) -> ScenarioDocument:
    """Return the JSON document of a scenario."""
    return {"steps": [_step_document(each) for each in played]}


def _played(scenario: Scenario) -> Iterator[Played]:
    plan, state, now_ns, pods = planned(scenario.configuration), State(), 0, scenario.pods
    for step in scenario.steps:
        now_ns += step.advance_ns
        pods = pods if step.pods is None else step.pods
        sync = synchronize(plan, state, Sample(now_ns, pods, step.summary))
        reclaimed = sync.reclaim
        if reclaimed:
            sync = settle(sync, step.after_reclaim or step.summary)
        state = sync.state
        admitted = tuple(admit(pod, state.pressures).admitted for pod in scenario.to_admit)
        yield Played(sync, reclaimed, admitted)


def _step_document(played: Played) -> StepDocument:
    sync = played.sync
    document: StepDocument = {
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
            "imageGC": Reclaim.IMAGES in played.reclaimed,
            "containerGC": Reclaim.CONTAINERS in played.reclaimed,
        },
    }
    if sync.outcome is Outcome.REFUSED:
        document["error"] = sync.refusal
    return document
