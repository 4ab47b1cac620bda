"""Scenarios: their fields, their results, and their errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from extender.eviction.command import EvictQuery, explain_query
from extender.eviction.scenario import Scenario, decode_scenario, load_scenario
from extender.explain.cluster_source import ClusterSource
from extender.kube.decoders.manifests import Document, ManifestError
from extender.terminal.output import TableRows
from policies.eviction.config import DEFAULT_TRANSITION_NS, EvictionConfig
from policies.eviction.filesystems import SPLIT
from policies.eviction.kubelet_releases import EVICTION_RELEASES, NEWEST_EVICTION
from tests.builders import encoded, pod_json
from tests.builders.eviction import bound
from tests.commands import rendered, written
from tests.extender.eviction.documents import measured, summary

LOW = {"signal": "memory.available", "operator": "LessThan", "value": {"quantity": "500Mi"}}


def scenario(*steps: Any, **fields: Any) -> dict[str, Any]:
    return {"config": {"thresholds": [LOW]}, "steps": list(steps), **fields}


def configured(**config: Any) -> EvictionConfig:
    document = {"config": {"thresholds": [], **config}, "steps": []}
    return read(document).config


def read(document: Any) -> Scenario:
    return decode_scenario(Document(encoded(document), "scenario.json[0]"), NEWEST_EVICTION)


def played(tmp_path: Path, document: Any, release: str = "1.38") -> Any:
    path = written(tmp_path, "scenario.json", document)
    return explain_query(EvictQuery(ClusterSource(), None, (), path, EVICTION_RELEASES[release]))


def test_absent_fields_have_the_kubelets_defaults() -> None:
    assert configured() == EvictionConfig((), DEFAULT_TRANSITION_NS, 0, isolates_storage=True)


def test_all_fields_of_a_configuration() -> None:
    soft = {
        "signal": "nodefs.available",
        "operator": "LessThan",
        "value": {"percentage": 0.1},
        "gracePeriodSeconds": 0.5,
        "minReclaim": {"quantity": "1Gi"},
    }
    assert configured(
        thresholds=[LOW, soft],
        pressureTransitionPeriodSeconds=60,
        maxPodGracePeriodSeconds=5,
        localStorageCapacityIsolation=False,
        dedicatedImageFs=True,
        dedicatedContainerFs=True,
        featureGates={"KubeletSeparateDiskGC": False},
    ) == EvictionConfig(
        (
            bound("memory.available<500Mi"),
            bound("nodefs.available<10%", grace="500ms", reclaim="1Gi"),
        ),
        60 * 10**9,
        5,
        isolates_storage=False,
        layout=SPLIT,
        release=NEWEST_EVICTION.with_feature_gates({"KubeletSeparateDiskGC": False}),
    )


def test_the_whole_answer(tmp_path: Path) -> None:
    document = scenario(
        {"summary": summary(600, measured("hog", 700))},
        {"advanceSeconds": 10, "summary": summary(400, measured("hog", 700))},
        {"advanceSeconds": 10},
        {"advanceSeconds": 300, "summary": summary(600), "pods": []},
        pods=[pod_json("hog", memory="1Gi")],
        podsToAdmit=[pod_json("best-effort"), pod_json("burstable", memory="1")],
    )
    reclaim = {"imageGC": False, "containerGC": False}
    calm = {"nodeConditions": [], "evicted": [], "admit": [True, True], "nodeReclaim": reclaim}
    pressed = {**calm, "nodeConditions": ["MemoryPressure"], "admit": [False, True]}
    message = "The node was low on resource: memory. Threshold quantity: 500Mi, available: 400Mi. "
    eviction = {"pod": "hog", "gracePeriodSeconds": 1, "message": message, "disruptionTarget": True}
    assert played(tmp_path, document).answer.document() == {
        "steps": [calm, {**pressed, "evicted": [eviction]}, pressed, calm]
    }


def test_an_older_release_can_be_chosen(tmp_path: Path) -> None:
    document = scenario({"summary": summary(400)}, pods=[pod_json("pod")])
    steps = played(tmp_path, document, "1.30").answer.document()["steps"]
    assert steps[0]["evicted"][0]["gracePeriodSeconds"] == 0


def test_pods_without_uids_are_distinguished(tmp_path: Path) -> None:
    pods = [pod_json(name) for name in ("a", "b")]
    stats = [measured(name, size) for name, size in (("a", 1), ("b", 2))]
    for pod, stat in zip(pods, stats, strict=True):
        del pod["metadata"]["uid"]
        del stat["podRef"]["uid"]
    steps = played(
        tmp_path, scenario({"summary": summary(400, *stats)}, pods=pods)
    ).answer.document()
    assert steps["steps"][0]["evicted"][0]["pod"] == "b"


def test_a_step_with_a_kubelet_error(tmp_path: Path) -> None:
    document = scenario({"summary": summary(400)}, {"summary": summary(400)})
    document["config"] |= {
        "dedicatedImageFs": True,
        "dedicatedContainerFs": True,
        "featureGates": {"KubeletSeparateDiskGC": False},
    }
    first, second = played(tmp_path, document).answer.document()["steps"]
    assert first["error"] == (
        "KubeletSeparateDiskGC is turned off but we still have a split filesystem"
    )
    assert "error" not in second


def test_the_table_has_a_line_for_each_step(tmp_path: Path) -> None:
    document = scenario(
        {"summary": summary(600)},
        {"advanceSeconds": 90, "summary": summary(400)},
        pods=[pod_json("hog")],
        podsToAdmit=[pod_json("new")],
    )
    lines = rendered(
        played(tmp_path, document).answer.table(TableRows.LIMITED), width=150
    ).splitlines()
    assert lines[1].split() == ["0", "0s", "no", "threshold", "is", "met", "yes"]
    assert lines[2].split() == ["1", "1m30s", "MemoryPressure", "hog", "(1", "s)", "no"]


def threshold(**fields: Any) -> dict[str, Any]:
    return scenario() | {"config": {"thresholds": [LOW, {**LOW, **fields}]}}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"steps": []}, "(the object): object missing required field config"),
        ({"config": {}, "steps": []}, "config: object missing required field thresholds"),
        ({"config": {"thresholds": []}}, "(the object): object missing required field steps"),
        (
            threshold(signal="swap.available"),
            "config.thresholds[1].signal: unsupported eviction signal swap.available",
        ),
        (
            threshold(operator="GreaterThan"),
            "config.thresholds[1].operator: expected LessThan, got 'GreaterThan'",
        ),
        (
            threshold(value={"quantity": "1ki"}),
            "config.thresholds[1].value.quantity: unable to parse quantity's suffix",
        ),
        (
            threshold(value={}),
            "config.thresholds[1].value: expected either a quantity or a percentage",
        ),
        (
            threshold(minReclaim={"quantity": "1", "percentage": 0.1}),
            "config.thresholds[1].minReclaim: expected either a quantity or a percentage",
        ),
        (threshold(gracePeriodSeconds=-1), "config.thresholds[1].gracePeriodSeconds: expected"),
        (scenario({"advanceSeconds": "10"}), "steps[0].advanceSeconds: expected float, got str"),
        (scenario({"summary": {}}), "steps[0].summary: object missing required field node"),
        (
            scenario(pods=[pod_json(), {"metadata": {}, "spec": {}}]),
            "pods[1]: Pod: metadata.name: required",
        ),
        (
            scenario({"pods": [pod_json("x", spec={"priority": "high"})]}),
            "steps[0].pods[0]: Pod default/x: spec.priority: expected",
        ),
        (scenario(podsToAdmit=[1]), "podsToAdmit[0]: Pod: (the object): expected"),
    ],
)
def test_an_error_names_its_place(document: Any, problem: str) -> None:
    with pytest.raises(ManifestError) as raised:
        read(document)
    assert str(raised.value).startswith(f"scenario.json[0]: {problem}")


def test_a_file_holds_one_scenario(tmp_path: Path) -> None:
    path = written(tmp_path, "two.json", scenario(), scenario())
    with pytest.raises(ManifestError, match="holds 2 documents; expected exactly one"):
        load_scenario(path, NEWEST_EVICTION)
