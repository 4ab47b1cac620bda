"""Conversion between the two versions of a WorkloadSpread."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.workloadspread.version_conversion import (
    V1ALPHA1,
    V1BETA1,
    UnknownVersionError,
    convert,
)
from tests.builders.workloadspread import spread_json

TERM: dict[str, Any] = {"matchExpressions": []}
CONDITION = {"type": "Schedulable", "status": "True", "reason": "Sufficient"}


def document(condition: dict[str, Any]) -> dict[str, Any]:
    subset = {"name": "a", "requiredNodeSelector": TERM, "preferredNodeSelector": [], "patch": {}}
    entry = {"name": "a", "replicas": 1, "conditions": [condition]}
    status = {"subsetStatuses": [entry], "versionedSubsetStatuses": {"v1": [entry]}}
    return {**spread_json(subset), "status": status}


def test_fields_have_other_names_in_the_older_version() -> None:
    older = convert(document(CONDITION), V1ALPHA1)
    assert older["apiVersion"] == V1ALPHA1
    assert older["spec"]["subsets"] == [
        {
            "name": "a",
            "requiredNodeSelectorTerm": TERM,
            "preferredNodeSelectorTerms": [],
            "patch": {},
        }
    ]


def test_nothing_is_lost_in_a_round_trip() -> None:
    before = document(CONDITION)
    assert convert(convert(before, V1ALPHA1), V1BETA1) == before
    bare = {"apiVersion": V1BETA1, "kind": "WorkloadSpread", "metadata": {}}
    assert convert(convert(bare, V1ALPHA1), V1BETA1) == bare


def test_the_older_version_has_no_generation_of_a_condition() -> None:
    older = convert(document({**CONDITION, "observedGeneration": 4}), V1ALPHA1)
    assert older == convert(document(CONDITION), V1ALPHA1)


@pytest.mark.parametrize("reason", [{}, {"reason": ""}, {"reason": None}])
def test_a_missing_reason_of_a_condition_becomes_unknown(reason: dict[str, Any]) -> None:
    older = {**document({"type": "X", "status": "True", **reason}), "apiVersion": V1ALPHA1}
    status = convert(older, V1BETA1)["status"]
    for entries in (status["subsetStatuses"], status["versionedSubsetStatuses"]["v1"]):
        assert entries[0]["conditions"][0]["reason"] == "Unknown"


def test_the_argument_is_not_changed() -> None:
    before = document(CONDITION)
    convert(before, V1ALPHA1)
    assert before == document(CONDITION)
    assert convert(before, V1BETA1) == before


def test_invalid_fields_are_kept() -> None:
    for invalid in ({"spec": 5}, {"spec": {"subsets": [5, None]}}, {"status": {"x": 1}}):
        older = {**invalid, "apiVersion": V1ALPHA1}
        assert convert(older, V1BETA1) == {**invalid, "apiVersion": V1BETA1}


def test_other_versions_are_refused() -> None:
    with pytest.raises(UnknownVersionError, match="apps/v3"):
        convert({"apiVersion": "apps/v3"}, V1BETA1)
    with pytest.raises(UnknownVersionError, match="expected"):
        convert({"apiVersion": V1BETA1}, "apps/v3")
