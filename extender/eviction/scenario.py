"""A scenario played: what a kubelet does in each step, and whom it admits after it.

Clocks start at 0. Pods that were evicted stay, as if nobody had carried it out.
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
    """One step: how much later it is, what is measured, and who is there from then on."""

    advance_ns: int
    summary: Summary | None
    after_reclaim: Summary | None
    pods: tuple[EvictablePod, ...] | None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A kubelet, its pods, who asks for admission, and what happens."""

    configuration: Configuration
    pods: tuple[EvictablePod, ...]
    to_admit: tuple[EvictablePod, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Played:
    """A step that was played: the whole round, what was cleaned up, and who is admitted then."""

    sync: Sync
    reclaimed: tuple[Reclaim, ...]
    admitted: tuple[bool, ...]


class EvictedDocument(TypedDict):
    """A pod that goes in a step."""

    pod: str
    gracePeriodSeconds: int
    message: str
    disruptionTarget: bool


class ReclaimDocument(TypedDict):
    """What the node cleaned up in a step."""

    imageGC: bool
    containerGC: bool


class _Round(TypedDict):
    nodeConditions: list[str]
    evicted: list[EvictedDocument]
    admit: list[bool]
    nodeReclaim: ReclaimDocument


class StepDocument(_Round, total=False):
    """What one step came to; ``error`` is there only if it failed."""

    error: str


class ScenarioDocument(TypedDict):
    """What ``explain evict --scenario`` prints."""

    steps: list[StepDocument]


def play_scenario(scenario: Scenario) -> list[Played]:
    """Play all steps."""
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
