"""A kubelet's configuration: its file or its configz, with the kubelet's own defaults."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.kubelet_config import KubeletConfig, decode_kubelet_config
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


def told(configuration: EvictionConfig) -> list[str]:
    return [str(threshold) for threshold in configuration.thresholds]


def test_an_empty_kubelet_configuration() -> None:
    assert configured() == EvictionConfig(DEFAULT_THRESHOLDS, 5 * MINUTE, 0, isolates_storage=True)


def test_a_complete_kubelet_configuration() -> None:
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


def test_configz_wraps_the_same() -> None:
    assert told(configured(kubeletconfig={"evictionHard": {"pid.available": "10%"}})) == [
        "pid.available<10%"
    ]


@pytest.mark.parametrize("period", ["0s", "0", None, ""])
def test_no_transition_period_is_five_minutes(period: str | None) -> None:
    assert configured(evictionPressureTransitionPeriod=period).transition_ns == 5 * MINUTE


def test_one_hard_threshold_replaces_all_defaults_unless_they_are_to_be_merged() -> None:
    hard: dict[str, Any] = {
        "evictionHard": {"nodefs.available": "1Gi"},
        "enforceNodeAllocatable": [],
    }
    assert told(configured(**hard)) == ["nodefs.available<1Gi"]
    merged = configured(**hard, mergeDefaultEvictionSettings=True)
    assert told(merged) == [
        "nodefs.available<1Gi",
        "memory.available<100Mi",
        "nodefs.inodesFree<5%",
        "imagefs.available<15%",
        "imagefs.inodesFree<5%",
    ]
    assert told(configured("1.32", **hard, mergeDefaultEvictionSettings=True)) == [
        "nodefs.available<1Gi"
    ]


def test_no_hard_thresholds_at_all_may_be_wanted() -> None:
    assert told(configured(evictionHard={})) == []


@pytest.mark.parametrize(
    ("fields", "field", "words"),
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
def test_mistakes_have_upstreams_words(fields: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(ThresholdError) as raised:
        configured(**fields)
    assert (raised.value.field, str(raised.value)) == (field, words)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"kind": "Pod"}, "kind: expected KubeletConfiguration, got Pod"),
        ({"evictionHard": ["x"]}, "evictionHard: expected object | null, got array"),
        ({"evictionMaxPodGracePeriod": "5"}, "evictionMaxPodGracePeriod: expected int | null"),
        ({"kubeletconfig": {"evictionSoft": 1}}, "kubeletconfig.evictionSoft: expected"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ManifestError) as raised:
        read(**fields)
    assert str(raised.value).startswith(f"kubelet.yaml[0]: {problem}")
