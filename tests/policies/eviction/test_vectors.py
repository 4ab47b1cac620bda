"""Upstream's own test tables of kubelet eviction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.eviction.scenario import decode_scenario, run_scenario, scenario_document
from extender.kube.decoders.kubelet.pods import decode_evictable_pod
from extender.kube.decoders.kubelet.summary_stats import decode_summary
from extender.kube.decoders.manifests import Document
from policies.eviction import manager_state
from policies.eviction.filesystems import DEDICATED_IMAGES, ONE_FILESYSTEM, SPLIT, Layout
from policies.eviction.kubelet_releases import NEWEST_EVICTION
from policies.eviction.node_conditions import admit
from policies.eviction.observations import (
    Observation,
    met_thresholds,
    notification_usage,
    observe,
    unresolved_thresholds,
    updated_thresholds,
)
from policies.eviction.pods import EvictablePod
from policies.eviction.ranking import rank
from policies.eviction.signals import (
    Pressure,
    Signal,
    ThresholdValue,
    parse_percentage,
    percentage_from_fraction,
    read_quantity,
)
from policies.eviction.stats import MemoryStats, Summary
from policies.eviction.thresholds import (
    Threshold,
    ThresholdError,
    ThresholdFlags,
    add_allocatable_thresholds,
    by_eviction_priority,
    parse_thresholds,
)
from tests.builders import encoded

CASES: list[dict[str, Any]] = msgspec.json.decode(
    (Path(__file__).parents[2] / "vectors" / "eviction.json").read_bytes()
)["cases"]
SECOND = 10**9
Case = Mapping[str, Any]


def value(shape: Mapping[str, Any]) -> ThresholdValue:
    if "percentage" in shape:
        return percentage_from_fraction(shape["percentage"])
    return read_quantity(shape["quantity"])


def threshold(shape: Mapping[str, Any]) -> Threshold:
    assert shape["operator"] == "LessThan"
    reclaim = shape["minReclaim"]
    return Threshold(
        Signal(shape["signal"]),
        value(shape["value"]),
        shape["gracePeriodSeconds"] * SECOND,
        None if reclaim is None else value(reclaim),
    )


def thresholds(shapes: Iterable[Mapping[str, Any]]) -> list[Threshold]:
    return [threshold(shape) for shape in shapes]


def observations(shapes: Mapping[str, Mapping[str, Any]]) -> dict[Signal, Observation]:
    def seconds(text: str | None) -> int | None:
        return None if text is None else int(text[14:16]) * 60 + int(text[17:19])

    return {
        Signal(signal): Observation(
            shape.get("available", 0), shape.get("capacity") or 0, seconds(shape.get("time"))
        )
        for signal, shape in shapes.items()
    }


def pod(shape: Mapping[str, Any]) -> EvictablePod:
    return decode_evictable_pod(encoded(shape), NEWEST_EVICTION)


def summary(shape: Mapping[str, Any]) -> Summary:
    return decode_summary(Document(encoded(shape), "summary"))[1]


def parse_threshold_config(case: Case) -> None:
    texts = ThresholdFlags(
        case["evictionHard"],
        case["evictionSoft"],
        case["evictionSoftGracePeriod"],
        case["evictionMinimumReclaim"],
    )
    if case["expect"]["error"]:
        with pytest.raises(ThresholdError) as raised:
            parse_thresholds(texts, case["enforceNodeAllocatable"])
        assert str(raised.value) == case["expect"]["errorMessage"]
        return
    found = parse_thresholds(texts, case["enforceNodeAllocatable"])
    assert set(found) == set(thresholds(case["expect"]["thresholds"]))


def percentage(case: Case) -> None:
    if case["expect"]["error"]:
        with pytest.raises(ValueError, match=r"strconv\.ParseFloat"):
            parse_percentage(case["input"])
    else:
        assert parse_percentage(case["input"]) == percentage_from_fraction(case["expect"]["value"])


def allocatable(case: Case) -> None:
    found = add_allocatable_thresholds(thresholds(case["thresholds"]))
    assert set(found) == set(thresholds(case["expect"]["thresholds"]))


def compare_values(case: Case) -> None:
    assert (value(case["a"]) == value(case["b"])) is case["expect"]["equal"]


def threshold_quantity(case: Case) -> None:
    found = parse_thresholds(ThresholdFlags(hard={"memory.available": case["threshold"]}), ())
    nanos = found[0].value.nanos_of(case["capacity"])
    assert nanos == case["expect"]["quantity"] * SECOND


_LAYOUTS: Mapping[frozenset[str], tuple[Layout, str]] = {
    frozenset({"root", "logs", "localVolumeSource"}): (ONE_FILESYSTEM, "nodefs"),
    frozenset({"logs", "localVolumeSource"}): (DEDICATED_IMAGES, "nodefs"),
    frozenset({"root"}): (DEDICATED_IMAGES, "imagefs"),
    frozenset(): (SPLIT, "imagefs"),
}


def pod_order(case: Case) -> None:
    signal, layout = Signal.PIDS, ONE_FILESYSTEM
    if case["rank"] == "rankMemoryPressure":
        signal = Signal.MEMORY
    elif case["rank"] == "rankDiskPressure":
        layout, filesystem = _LAYOUTS[frozenset(case["fsStatsToMeasure"]) - {"images"}]
        kind = "available" if case["diskResource"] == "ephemeral-storage" else "inodesFree"
        signal = Signal(f"{filesystem}.{kind}")
        assert len(layout.counted_usage(signal)) == len(set(case["fsStatsToMeasure"]) - {"images"})
    stats = summary({"node": {}, "pods": case["podStats"]}).pods
    ranking = rank([pod(shape) for shape in case["pods"]], stats, signal, layout)
    assert [standing.pod.name for standing in ranking] == case["expect"]["order"]


def signal_order(case: Case) -> None:
    given = [Threshold(Signal(signal), read_quantity("1")) for signal in case["signals"]]
    assert [each.signal for each in by_eviction_priority(given)] == case["expect"]["signals"]


def signal_observations(case: Case) -> None:
    measured = summary(case["summary"])
    assert observe(measured.node) == observations(case["expect"]["observations"])
    working_sets = {uid: stats.working_set for uid, stats in measured.pods.items()}
    assert working_sets == case["expect"]["podWorkingSetByUid"]


def thresholds_met(case: Case) -> None:
    look = unresolved_thresholds if case["enforceMinReclaim"] else met_thresholds
    found = look(thresholds(case["thresholds"]), observations(case["observations"]))
    assert found == thresholds(case["expect"]["thresholds"])


def updated_stats(case: Case) -> None:
    found = updated_thresholds(
        thresholds(case["thresholds"]),
        observations(case["observations"]),
        observations(case["lastObservations"]),
    )
    assert found == thresholds(case["expect"]["thresholds"])


def times(shapes: Iterable[Mapping[str, Any]]) -> dict[Threshold, int]:
    return {threshold(shape["threshold"]): shape["at"] * SECOND for shape in shapes}


def first_observed(case: Case) -> None:
    found = manager_state.thresholds_first_observed_at(
        thresholds(case["thresholds"]), times(case["lastObservedAt"]), case["now"] * SECOND
    )
    assert found == times(case["expect"]["observedAt"])


def met_grace_period(case: Case) -> None:
    found = manager_state.thresholds_met_grace_period(
        times(case["observedAt"]), case["now"] * SECOND
    )
    assert found == thresholds(case["expect"]["thresholds"])


def node_conditions(case: Case) -> None:
    given = [Threshold(Signal(signal), read_quantity("1")) for signal in case["signals"]]
    assert manager_state.pressures_of(given) == case["expect"]["nodeConditions"]


def conditions_last_observed(case: Case) -> None:
    found = manager_state.pressures_last_observed_at(
        [Pressure(name) for name in case["nodeConditions"]],
        {Pressure(name): at for name, at in case["lastObservedAt"].items()},
        case["now"],
    )
    assert found == case["expect"]["observedAt"]


def conditions_observed_since(case: Case) -> None:
    seen = {Pressure(name): at for name, at in case["observedAt"].items()}
    found = manager_state.pressures_observed_since(seen, case["periodSeconds"], case["now"])
    assert found == sorted(case["expect"]["nodeConditions"])


def has_condition(case: Case) -> None:
    assert (case["item"] in case["nodeConditions"]) is case["expect"]["result"]


def critical(case: Case) -> None:
    assert pod(case["pod"]).critical is case["expect"]["critical"]


def admission(case: Case) -> None:
    pressures = [Pressure(name) for name in case["nodeConditions"]]
    found = [admit(pod(shape), pressures).admitted for shape in case["pods"]]
    assert found == case["expect"]["admit"]


def notification(case: Case) -> None:
    memory = case["memory"]
    stats = MemoryStats(memory["availableBytes"], memory["workingSetBytes"], memory["usageBytes"])
    found = notification_usage(threshold(case["threshold"]), stats)
    assert found == case["expect"]["usageThresholdBytes"]


def scenario(case: Case) -> None:
    document = Document(encoded(case), case["name"])
    results = list(run_scenario(decode_scenario(document, NEWEST_EVICTION)))
    found = scenario_document(results)["steps"]
    for step, expected in zip(found, case["expect"]["steps"], strict=True):
        assert expected_part(step, expected) == expected
        assert ("error" in step) is ("error" in expected)


def expected_part(found: Any, expected: Any) -> Any:
    """Return the found values of the expected keys; an absent key is not checked."""
    if isinstance(expected, dict):
        return {key: expected_part(found[key], value) for key, value in expected.items()}
    if isinstance(expected, list) and len(found) == len(expected):
        return [expected_part(each, value) for each, value in zip(found, expected, strict=True)]
    return found


TABLES: Mapping[str, Callable[[Case], None]] = {
    "parseThresholdConfig": parse_threshold_config,
    "parsePercentage": percentage,
    "addAllocatableThresholds": allocatable,
    "compareThresholdValue": compare_values,
    "thresholdQuantity": threshold_quantity,
    "podOrder": pod_order,
    "sortByEvictionPriority": signal_order,
    "makeSignalObservations": signal_observations,
    "thresholdsMet": thresholds_met,
    "thresholdsUpdatedStats": updated_stats,
    "thresholdsFirstObservedAt": first_observed,
    "thresholdsMetGracePeriod": met_grace_period,
    "nodeConditions": node_conditions,
    "nodeConditionsLastObservedAt": conditions_last_observed,
    "nodeConditionsObservedSince": conditions_observed_since,
    "hasNodeCondition": has_condition,
    "isCriticalPod": critical,
    "admit": admission,
    "memcgThreshold": notification,
    "managerScenario": scenario,
}


@pytest.mark.parametrize("case", CASES, ids=[f"{case['table']}: {case['name']}" for case in CASES])
def test_upstream_asserts_the_same(case: Case) -> None:
    TABLES[case["table"]](case)
