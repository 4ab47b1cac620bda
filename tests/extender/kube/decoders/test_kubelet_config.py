"""A kubelet's configuration: its file or its configz, with the kubelet's own defaults."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.kubelet.config import KubeletConfig, decode_kubelet_config
from extender.kube.decoders.manifests import Document, ManifestError
from policies.eviction.config import DEFAULT_THRESHOLDS, EvictionConfig
from policies.eviction.filesystems import ONE_FILESYSTEM, SPLIT
from policies.eviction.kubelet_releases import EVICTION_RELEASES, NEWEST_EVICTION
from policies.eviction.thresholds import ThresholdError
from tests.builders import encoded
from tests.builders.eviction import bound

MINUTE = 60 * 10**9


def read(**fields: Any) -> KubeletConfig:
    return decode_kubelet_config(Document(encoded(fields), "kubelet.yaml[0]"))


def configured(release: str = NEWEST_EVICTION.name, **fields: Any) -> EvictionConfig:
    return read(**fields).configuration(ONE_FILESYSTEM, EVICTION_RELEASES[release])


def thresholds(configuration: EvictionConfig) -> list[str]:
    return [str(threshold) for threshold in configuration.thresholds]


def test_an_empty_configuration_has_the_defaults() -> None:
    assert configured() == EvictionConfig(DEFAULT_THRESHOLDS, 5 * MINUTE, 0, isolates_storage=True)


def test_a_complete_configuration_is_decoded() -> None:
    found = read(
        kind="KubeletConfiguration",
        apiVersion="kubelet.config.k8s.io/v1beta1",
        evictionHard={"memory.available": "1Gi"},
        evictionSoft={"nodefs.available": "10%"},
        evictionSoftGracePeriod={"nodefs.available": "1m30s"},
        evictionMinimumReclaim={"memory.available": "500Mi"},
        evictionPressureTransitionPeriod="1m0s",
        evictionMaxPodGracePeriod=30,
        enforceNodeAllocatable=["none"],
        localStorageCapacityIsolation=False,
        featureGates={"KubeletSeparateDiskGC": False, "Other": True},
    ).configuration(SPLIT, NEWEST_EVICTION)
    assert found == EvictionConfig(
        (
            bound("memory.available<1Gi", reclaim="500Mi"),
            bound("nodefs.available<10%", grace="1m30s"),
        ),
        MINUTE,
        30,
        isolates_storage=False,
        layout=SPLIT,
        release=NEWEST_EVICTION.with_feature_gates({"KubeletSeparateDiskGC": False}),
    )


def test_the_answer_of_configz_is_decoded() -> None:
    assert thresholds(configured(kubeletconfig={"evictionHard": {"pid.available": "10%"}})) == [
        "pid.available<10%"
    ]


@pytest.mark.parametrize("period", ["0s", "0", None, ""])
def test_no_transition_period_is_five_minutes(period: str | None) -> None:
    assert configured(evictionPressureTransitionPeriod=period).transition_ns == 5 * MINUTE


def test_a_hard_threshold_replaces_all_defaults_unless_they_are_merged() -> None:
    hard: dict[str, Any] = {
        "evictionHard": {"nodefs.available": "1Gi"},
        "enforceNodeAllocatable": [],
    }
    assert thresholds(configured(**hard)) == ["nodefs.available<1Gi"]
    merged = configured(**hard, mergeDefaultEvictionSettings=True)
    assert thresholds(merged) == [
        "nodefs.available<1Gi",
        "memory.available<100Mi",
        "nodefs.inodesFree<5%",
        "imagefs.available<15%",
        "imagefs.inodesFree<5%",
    ]
    assert thresholds(configured("1.32", **hard, mergeDefaultEvictionSettings=True)) == [
        "nodefs.available<1Gi"
    ]


def test_the_hard_thresholds_may_be_empty() -> None:
    assert thresholds(configured(evictionHard={})) == []


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        (
            {"evictionSoft": {"memory.available": "1Gi"}},
            "evictionSoft",
            "grace period must be specified for the soft eviction threshold memory.available",
        ),
        (
            {"evictionPressureTransitionPeriod": "5"},
            "evictionPressureTransitionPeriod",
            'time: missing unit in duration "5"',
        ),
    ],
)
def test_errors_of_thresholds_are_those_of_upstream(
    fields: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(ThresholdError) as raised:
        configured(**fields)
    assert (raised.value.field, str(raised.value)) == (field, message)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"kind": "Pod"}, "kind: expected KubeletConfiguration, got Pod"),
        ({"evictionHard": ["x"]}, "evictionHard: expected object | null, got array"),
        ({"evictionMaxPodGracePeriod": "5"}, "evictionMaxPodGracePeriod: expected int | null"),
        ({"kubeletconfig": {"evictionSoft": 1}}, "kubeletconfig.evictionSoft: expected"),
    ],
)
def test_an_invalid_field_is_reported(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ManifestError) as raised:
        read(**fields)
    assert str(raised.value).startswith(f"kubelet.yaml[0]: {problem}")
