"""WorkloadSpreads decoded from either version, and their status written back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from extender.kube.decoders.typed_decoder import ObjectError
from extender.kube.workloadspread.spreads import (
    StoredWorkloadSpread,
    decode_workloadspread,
    encode_status,
)
from policies.kubernetes.selectors import LabelSelector, Toleration, equals_all
from policies.workloadspread.model import (
    AdaptiveStrategy,
    Expression,
    NodeTerm,
    Preference,
    ScheduleStrategy,
    Subset,
    SubsetCondition,
    SubsetStatus,
    SubsetToleration,
    TargetFilter,
    WorkloadSpread,
    WorkloadSpreadStatus,
)
from policies.workloadspread.object_references import WorkloadReference
from tests.builders import encoded
from tests.builders.workloadspread import CLONE_SET, at, in_zone, moment, spread_json

ALPHA = "apps.kruise.io/v1alpha1"
ZONE = in_zone("a")["requiredNodeSelector"]
IN_ZONE = NodeTerm((Expression("zone", "In", ("a",)),))


def decoded(document: dict[str, Any]) -> WorkloadSpread:
    return decode_workloadspread(encoded(document)).spread


def problem(document: Any) -> str:
    with pytest.raises(ObjectError) as caught:
        decode_workloadspread(document if isinstance(document, bytes) else encoded(document))
    return str(caught.value)


def test_a_complete_subset_is_decoded() -> None:
    (subset,) = decoded(
        spread_json(
            {
                "name": "a",
                "maxReplicas": "50%",
                "requiredNodeSelector": ZONE,
                "preferredNodeSelector": [{"weight": 5, "preference": ZONE}],
                "tolerations": [{"key": "t", "operator": "Exists", "tolerationSeconds": 5}],
                "patch": {"metadata": {}},
            }
        )
    ).subsets
    assert subset == Subset(
        "a",
        "50%",
        required=IN_ZONE,
        preferred=(Preference(5, IN_ZONE),),
        tolerations=(SubsetToleration(Toleration("t", "Exists"), bounded=True),),
        patched=True,
    )


def test_a_minimal_workload_spread_is_decoded() -> None:
    for bare in (
        {"metadata": {"name": "web"}},
        {"metadata": {"name": "web"}, "spec": None, "status": None},
        {"metadata": {"name": "web"}, "spec": {"subsets": None, "scheduleStrategy": {}}},
    ):
        assert decoded(bare) == WorkloadSpread("default", "web", None, ())


def test_the_older_version_is_decoded_alike() -> None:
    older = spread_json(
        {
            "name": "a",
            "requiredNodeSelectorTerm": ZONE,
            "preferredNodeSelectorTerms": [{"weight": 5, "preference": ZONE}],
        }
    )
    (subset,) = decoded({**older, "apiVersion": ALPHA}).subsets
    assert subset == Subset("a", required=IN_ZONE, preferred=(Preference(5, IN_ZONE),))


def test_all_other_fields_are_decoded() -> None:
    document = spread_json(
        scheduleStrategy={
            "type": "Adaptive",
            "adaptive": {"disableSimulationSchedule": True, "rescheduleCriticalSeconds": 30},
        },
        targetFilter={
            "selector": {"matchLabels": {"app": "web"}},
            "replicasPathList": ["spec.count"],
        },
    )
    document["metadata"] |= {
        "resourceVersion": "7",
        "generation": 3,
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {"workloadspread.kruise.io/ignore-patch-existing-pods-metadata": "True"},
    }
    assert decoded(document) == WorkloadSpread(
        "default",
        "web",
        WorkloadReference(CLONE_SET.api_version, "CloneSet", "web"),
        (),
        uid="web-spread",
        resource_version="7",
        generation=3,
        terminating=True,
        target_filter=TargetFilter(
            LabelSelector(equals_all({"app": "web"})), replicas_paths=("spec.count",)
        ),
        strategy=ScheduleStrategy(
            "Adaptive", AdaptiveStrategy(simulates=False, reschedule_critical_seconds=30)
        ),
        ignores_patch_metadata=True,
    )


def test_an_invalid_selector_is_kept_as_an_error() -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "Like"}]}
    found = decoded(spread_json(targetFilter={"selector": selector})).target_filter
    assert found == TargetFilter(error='"Like" is not a valid label selector operator')


STATUS = {
    "observedGeneration": 3,
    "subsetStatuses": [
        {
            "name": "a",
            "replicas": 2,
            "conditions": [
                {
                    "type": "Schedulable",
                    "status": "False",
                    "observedGeneration": 2,
                    "lastTransitionTime": "2026-01-01T11:59:50Z",
                    "reason": "PodUnschedulable",
                    "message": "",
                },
                {
                    "type": "Other",
                    "status": "True",
                    "lastTransitionTime": None,
                    "reason": "",
                    "message": "m",
                },
            ],
            "missingReplicas": 1,
            "creatingPods": {"x": "2026-01-01T11:59:55Z"},
            "deletingPods": {"y": "2026-01-01T11:59:58Z"},
        }
    ],
    "versionedSubsetStatuses": {"v1": [{"name": "a", "replicas": 0, "missingReplicas": -1}]},
}


def test_a_status_is_encoded_as_it_was_decoded() -> None:
    found = decoded({**spread_json(), "status": STATUS}).status
    assert found == WorkloadSpreadStatus(
        3,
        (
            SubsetStatus(
                "a",
                1,
                2,
                creating={"x": at(-5)},
                deleting={"y": at(-2)},
                conditions=(
                    SubsetCondition("Schedulable", "False", "PodUnschedulable", "", at(-10), 2),
                    SubsetCondition("Other", "True", "", "m"),
                ),
            ),
        ),
        {"v1": (SubsetStatus("a", -1),)},
    )
    assert encode_status(found) == STATUS


def test_an_empty_status_is_encoded() -> None:
    assert encode_status(decoded(spread_json()).status) == {}


def test_times_may_have_a_zone_and_null_is_none() -> None:
    entry = {
        "name": "a",
        "replicas": 0,
        "missingReplicas": 0,
        "creatingPods": {"x": "2026-01-01T13:00:00+01:00"},
        "conditions": [{"type": "Schedulable", "status": "True", "lastTransitionTime": None}],
    }
    (found,) = decoded({**spread_json(), "status": {"subsetStatuses": [entry]}}).status.subsets
    assert found.creating == {"x": moment("2026-01-01T12:00:00Z")}
    assert found.conditions[0].changed_ns is None


def test_errors_are_reported_in_one_line() -> None:
    message = problem(spread_json({"name": "a", "maxReplicas": 1.5}))
    assert message.startswith("WorkloadSpread default/web: spec.subsets[0].maxReplicas: ")
    assert "\n" not in message


def test_invalid_types_are_reported() -> None:
    assert "spec.subsets: " in problem(spread_json(subsets={}))
    assert "spec.targetRef: " in problem(spread_json(targetRef="web"))


def test_an_unknown_version_is_reported() -> None:
    expected = "expected apps.kruise.io/v1beta1 or apps.kruise.io/v1alpha1"
    assert expected in problem({**spread_json(), "apiVersion": "apps.kruise.io/v2"})


@pytest.mark.parametrize("raw", [b"{", b"[]", b"\xff", b"{}"])
def test_bytes_that_are_no_object_are_reported(raw: bytes) -> None:
    assert problem(raw)


def test_a_subset_is_found_by_name() -> None:
    written: StoredWorkloadSpread = decode_workloadspread(
        encoded(spread_json({"name": "a"}, {"maxReplicas": 1}))
    )
    assert written.subset("a") == {"name": "a"}
    assert written.subset("") == {"maxReplicas": 1}
    with pytest.raises(KeyError):
        written.subset("b")


def test_an_unchanged_object_is_decoded_once() -> None:
    raw = encoded(spread_json())
    assert decode_workloadspread(raw + b"\n") is decode_workloadspread(raw)


def test_a_changed_object_is_decoded_again() -> None:
    one, other = spread_json(), spread_json()
    other["metadata"]["resourceVersion"] = "8"
    assert decoded(other).resource_version == "8"
    assert decoded(one) == replace(decoded(other), resource_version=decoded(one).resource_version)
