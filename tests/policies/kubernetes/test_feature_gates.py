"""Feature gates: their defaults by release, and what a setting changes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest

from policies.kubernetes.feature_gates import STAGES, FeatureGate, apply_settings
from policies.kubernetes.releases import (
    RELEASES,
    UnknownReleaseError,
    assumed_gates,
    gate_warnings,
    release,
)

MINORS = tuple(int(name.removeprefix("1.")) for name in RELEASES)


@pytest.mark.parametrize(
    ("gate", "enabled_since"),
    [
        ("DynamicResourceAllocation", 34),
        ("DRAExtendedResource", 36),
        ("DRADeviceTaintRules", 37),
        ("NodeDeclaredFeatures", 36),
        ("NominatedNodeNameForExpectation", 35),
        ("PodLevelResources", 34),
        ("GenericWorkload", 38),
        ("InPlacePodVerticalScalingSchedulerPreemption", None),
    ],
)
def test_a_gate_is_on_from_its_release_on(gate: str, enabled_since: int | None) -> None:
    enabled = [minor for minor in MINORS if gate in apply_settings(minor, {}).enabled]
    expected = [m for m in MINORS if enabled_since is not None and m >= enabled_since]
    assert enabled == expected


def test_every_gate_has_stages_in_order() -> None:
    assert set(STAGES) == set(FeatureGate)
    for stages in STAGES.values():
        assert all(one.since < other.since for one, other in pairwise(stages))


@pytest.mark.parametrize(
    ("minor", "settings", "changed"),
    [
        (37, {"GenericWorkload": True}, {"GenericWorkload"}),
        (36, {"NodeDeclaredFeatures": False}, {"NodeDeclaredFeatures"}),
        (34, {"NodeDeclaredFeatures": True}, set[str]()),  # it does not exist yet
        (37, {"NodeDeclaredFeatures": False}, set[str]()),  # it is GA
        (37, {"GangScheduling": True}, set[str]()),  # GenericWorkload includes it
        (37, {"Unknown": True}, set[str]()),
        (
            35,
            {"AllAlpha": True, "GenericWorkload": False, "GangScheduling": True},
            {
                "DRAConsumableCapacity",
                "DRADeviceBindingConditions",
                "DRADeviceTaintRules",
                "DRADeviceTaints",
                "DRAExtendedResource",
                "DRAPartitionableDevices",
                "GangScheduling",
                "InPlacePodLevelResourcesVerticalScaling",
                "NodeDeclaredFeatures",
                "TaintTolerationComparisonOperators",
                "VolumeLimitScaling",
            },
        ),
        (33, {"AllBeta": False}, {"InPlacePodVerticalScaling"}),
    ],
)
def test_a_setting_changes_a_gate_that_exists_and_is_not_ga(
    minor: int, settings: Mapping[str, bool], changed: set[str]
) -> None:
    version = f"1.{minor}"
    assert release(version, settings).gates ^ release(version).gates == changed


@pytest.mark.parametrize(
    ("version", "settings", "warnings"),
    [
        ("1.37", {"GenericWorkload": True, "AllBeta": False}, []),
        ("1.37", {"NodeDeclaredFeatures": True}, []),
        (
            "1.37",
            {"NodeDeclaredFeatures": False},
            ["NodeDeclaredFeatures is GA in 1.37 and cannot be disabled; it is ignored"],
        ),
        (
            "1.34",
            {"GenericWorkload": True},
            ["GenericWorkload does not exist in 1.34; it is ignored"],
        ),
        (
            "1.37",
            {"WorkloadAwarePreemption": True},
            ["WorkloadAwarePreemption does not exist in 1.37; it is ignored"],
        ),
        (
            "1.37.2",
            {"OpportunisticBatching": True},
            ["OpportunisticBatching changes no decision; it is ignored"],
        ),
        (
            "1.37",
            {"GenericWorklod": True},
            ["GenericWorklod changes no decision; it is ignored; did you mean GenericWorkload?"],
        ),
    ],
)
def test_a_setting_without_effect_is_reported(
    version: str, settings: Mapping[str, bool], warnings: list[str]
) -> None:
    assert list(gate_warnings(version, settings)) == warnings


@pytest.mark.parametrize(
    ("version", "settings", "assumed"),
    [
        ("1.30", {}, set[str]()),
        ("1.31", {}, set[str]()),
        ("1.32", {}, {"DynamicResourceAllocation"}),
        ("1.33", {"DynamicResourceAllocation": False}, set[str]()),
        ("1.34", {}, set[str]()),
        ("1.35", {}, set[str]()),
        ("1.36", {}, {"GenericWorkload", "GangScheduling", "WorkloadAwarePreemption"}),
        ("1.37", {}, {"GenericWorkload", "CompositePodGroup"}),
        ("1.37", {"AllAlpha": False}, {"GenericWorkload"}),
        ("1.37", {"AllBeta": True}, {"CompositePodGroup"}),
        ("1.37", {"GenericWorkload": True, "CompositePodGroup": False}, set[str]()),
        ("1.38", {}, {"CompositePodGroup"}),
    ],
)
def test_gates_that_objects_show_are_assumed_unless_they_are_set(
    version: str, settings: Mapping[str, bool], assumed: set[str]
) -> None:
    assert assumed_gates(version, settings) == assumed


def test_the_release_of_a_warning_has_to_be_known() -> None:
    with pytest.raises(UnknownReleaseError, match=r"expected one of 1\.30"):
        gate_warnings("1.29", {})


def test_without_settings_a_release_is_that_of_the_table() -> None:
    assert release("1.37", {}) is RELEASES["1.37"]
