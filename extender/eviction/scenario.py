"""Scenarios: the round of a kubelet in each step, and the pods that it admits after it.

Clocks start at 0. Evicted pods stay in the scenario, as if the eviction had not been carried out. A
file has the kubelet's configuration, its pods, and its stats step by step::

    config:
      thresholds:
      - {signal: memory.available, value: {quantity: 1Gi}, gracePeriodSeconds: 0}
      pressureTransitionPeriodSeconds: 300
    pods: [...]
    steps:
    - {advanceSeconds: 0, summary: {node: ..., pods: [...]}}

``advanceSeconds`` pass before a step's round. ``summaryAfterGC`` are the stats after node-level
reclaim, ``pods`` replace the previous pods, and ``podsToAdmit`` request admission after each round.
A step without a summary has no stats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, TypedDict

import msgspec
from msgspec import Struct

from extender.kube.decoders.kubelet.pods import decode_evictable_pod
from extender.kube.decoders.kubelet.summary_stats import SummaryV1Alpha1, summary_of
from extender.kube.decoders.manifests import (
    Document,
    ManifestError,
    decode_document,
    read_documents,
)
from extender.kube.decoders.typed_decoder import ObjectError
from policies.eviction.config import EvictionConfig, resolve
from policies.eviction.filesystems import Layout, ReclaimAction
from policies.eviction.kubelet_releases import EvictionRelease
from policies.eviction.manager import (
    SyncInput,
    SyncOutcome,
    SyncResult,
    finish_after_reclaim,
    synchronize,
)
from policies.eviction.manager_state import ManagerState
from policies.eviction.messages import Eviction
from policies.eviction.node_conditions import admit
from policies.eviction.pods import EvictablePod
from policies.eviction.signals import ThresholdValue, percentage_from_fraction, read_quantity
from policies.eviction.stats import Summary
from policies.eviction.thresholds import Threshold, ThresholdError, parse_signal

Seconds = Annotated[float, msgspec.Meta(ge=0, le=2**33)]

_SECOND = 10**9
_LESS_THAN = "LessThan"


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


class EvictionDocument(TypedDict):
    """A pod that is evicted."""

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
    evicted: list[EvictionDocument]
    admit: list[bool]
    nodeReclaim: ReclaimDocument


class ScenarioStepDocument(_Round, total=False):
    """The result of one step; ``error`` is only present if it failed."""

    error: str


class ScenarioDocument(TypedDict):
    """The output of ``explain evict --scenario``."""

    steps: list[ScenarioStepDocument]


def scenario_document(results: Iterable[ScenarioStepResult]) -> ScenarioDocument:
    """Return the JSON document of a scenario."""
    return {"steps": [_step_document(each) for each in results]}


def eviction_document(name: str, eviction: Eviction) -> EvictionDocument:
    """Return the JSON document of an eviction; the pod is named as its output names pods."""
    return {
        "pod": name,
        "gracePeriodSeconds": eviction.grace_seconds,
        "message": eviction.message,
        "disruptionTarget": eviction.condition is not None,
    }


def run_scenario(scenario: Scenario) -> Iterator[ScenarioStepResult]:
    """Run the steps one by one."""
    config, state, now_ns, pods = resolve(scenario.config), ManagerState(), 0, scenario.pods
    for step in scenario.steps:
        now_ns += step.advance_ns
        pods = pods if step.pods is None else step.pods
        sync = synchronize(config, state, SyncInput(now_ns, pods, step.summary))
        reclaimed = sync.reclaim
        if reclaimed:
            sync = finish_after_reclaim(sync, step.after_reclaim or step.summary)
        state = sync.state
        admitted = tuple(admit(pod, state.pressures).admitted for pod in scenario.to_admit)
        yield ScenarioStepResult(sync, reclaimed, admitted)


def _step_document(result: ScenarioStepResult) -> ScenarioStepDocument:
    sync = result.sync
    document: ScenarioStepDocument = {
        "nodeConditions": list(sync.state.pressures),
        "evicted": [eviction_document(each.pod.name, each) for each in sync.evictions],
        "admit": list(result.admitted),
        "nodeReclaim": {
            "imageGC": ReclaimAction.IMAGES in result.reclaimed,
            "containerGC": ReclaimAction.CONTAINERS in result.reclaimed,
        },
    }
    if sync.outcome is SyncOutcome.REFUSED:
        document["error"] = sync.error
    return document


class _ScenarioValue(Struct, rename="camel"):
    quantity: str | None = None
    percentage: float | None = None


class _ScenarioThreshold(Struct, rename="camel"):
    signal: str
    value: _ScenarioValue
    operator: str = _LESS_THAN
    grace_period_seconds: Seconds = 0
    min_reclaim: _ScenarioValue | None = None


class _ScenarioConfig(Struct, rename="camel"):
    thresholds: list[_ScenarioThreshold]
    pressure_transition_period_seconds: Seconds = 300
    max_pod_grace_period_seconds: int = 0
    local_storage_capacity_isolation: bool = True
    dedicated_image_fs: bool | None = None
    dedicated_container_fs: bool | None = None
    feature_gates: dict[str, bool] | None = None


class _ScenarioFileStep(Struct):
    advanceSeconds: Seconds = 0  # noqa: N815 - the key of the document
    summary: SummaryV1Alpha1 | None = None
    summaryAfterGC: SummaryV1Alpha1 | None = None  # noqa: N815
    pods: list[msgspec.Raw] | None = None


class _ScenarioFile(Struct, rename="camel"):
    config: _ScenarioConfig
    steps: list[_ScenarioFileStep]
    pods: list[msgspec.Raw] | None = None
    pods_to_admit: list[msgspec.Raw] | None = None


_scenarios = msgspec.json.Decoder(_ScenarioFile)


def load_scenario(path: str, release: EvictionRelease) -> Scenario:
    """Read a scenario. Raise ManifestError."""
    documents = read_documents(path)
    if len(documents) != 1:
        raise ManifestError(f"{path}: holds {len(documents)} documents; expected exactly one")
    return decode_scenario(documents[0], release)


def decode_scenario(document: Document, release: EvictionRelease) -> Scenario:
    """Decode a scenario from its document. Raise ManifestError."""
    shape = decode_document(_scenarios, document)
    gated = release.with_feature_gates(shape.config.feature_gates or {})

    def pods(path: str, raws: Iterable[msgspec.Raw] | None) -> tuple[EvictablePod, ...]:
        return tuple(_pods(f"{document.source}: {path}", raws or (), gated))

    try:
        configuration = _configuration(shape.config, gated)
    except ThresholdError as error:
        raise ManifestError(f"{document.source}: config.{error.field}: {error}") from None
    return Scenario(
        configuration,
        pods("pods", shape.pods),
        pods("podsToAdmit", shape.pods_to_admit),
        tuple(
            ScenarioStep(
                _nanoseconds(step.advanceSeconds),
                None if step.summary is None else summary_of(step.summary),
                None if step.summaryAfterGC is None else summary_of(step.summaryAfterGC),
                None if step.pods is None else pods(f"steps[{index}].pods", step.pods),
            )
            for index, step in enumerate(shape.steps)
        ),
    )


def _configuration(config: _ScenarioConfig, release: EvictionRelease) -> EvictionConfig:
    thresholds = (
        _threshold(f"thresholds[{index}]", each) for index, each in enumerate(config.thresholds)
    )
    return EvictionConfig(
        tuple(thresholds),
        _nanoseconds(config.pressure_transition_period_seconds),
        config.max_pod_grace_period_seconds,
        config.local_storage_capacity_isolation,
        Layout(bool(config.dedicated_image_fs), bool(config.dedicated_container_fs)),
        release,
    )


def _threshold(path: str, shape: _ScenarioThreshold) -> Threshold:
    if shape.operator != _LESS_THAN:
        problem = f"expected {_LESS_THAN}, got {shape.operator!r}"
        raise ThresholdError(problem, f"{path}.operator")
    try:
        signal = parse_signal(shape.signal)
    except ThresholdError as error:
        raise ThresholdError(str(error), f"{path}.signal") from None
    reclaim = shape.min_reclaim
    return Threshold(
        signal,
        _value(f"{path}.value", shape.value),
        _nanoseconds(shape.grace_period_seconds),
        None if reclaim is None else _value(f"{path}.minReclaim", reclaim),
    )


def _value(path: str, shape: _ScenarioValue) -> ThresholdValue:
    if shape.percentage is not None and shape.quantity is None:
        return percentage_from_fraction(shape.percentage)
    if shape.quantity is None or shape.percentage is not None:
        raise ThresholdError("expected either a quantity or a percentage", path)
    try:
        return read_quantity(shape.quantity)
    except ValueError as error:
        raise ThresholdError(str(error), f"{path}.quantity") from None


def _pods(
    place: str, raws: Iterable[msgspec.Raw], release: EvictionRelease
) -> Iterator[EvictablePod]:
    for index, raw in enumerate(raws):
        try:
            pod = decode_evictable_pod(bytes(raw), release)
        except ObjectError as error:
            raise ManifestError(f"{place}[{index}]: {error}") from None
        yield pod if pod.uid else replace(pod, uid=pod.key)


def _nanoseconds(seconds: float) -> int:
    return round(seconds * _SECOND)
