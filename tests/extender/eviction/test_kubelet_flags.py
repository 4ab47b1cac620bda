"""The kubelet's flags: pairs, precedence over a file, and errors with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.config.strict_decoding import ConfigError
from extender.eviction.kubelet_flags import KubeletFlags
from extender.kube.decoders.manifests import ManifestError
from policies.eviction.config import DEFAULT_THRESHOLDS, EvictionConfig
from policies.eviction.filesystems import ONE_FILESYSTEM
from policies.eviction.kubelet_releases import NEWEST_EVICTION
from tests.builders.eviction import bound


def configured(flags: KubeletFlags) -> EvictionConfig:
    return flags.eviction_config(ONE_FILESYSTEM, NEWEST_EVICTION)


def threshold_texts(flags: KubeletFlags) -> list[str]:
    return [str(threshold) for threshold in configured(flags).thresholds]


def test_without_flags_the_kubelets_defaults_apply() -> None:
    assert configured(KubeletFlags()).thresholds == DEFAULT_THRESHOLDS


def test_pairs_are_parsed_as_by_the_kubelet() -> None:
    flags = KubeletFlags(
        eviction_hard=(" nodefs.available < 10%,,pid.available<9", "pid.available<10"),
        eviction_soft=("memory.available<1Gi",),
        grace_period=("memory.available=1m",),
        minimum_reclaim=("memory.available=5%,nodefs.available=1Gi",),
    )
    assert list(configured(flags).thresholds) == [
        bound("nodefs.available<10%", reclaim="1Gi"),
        bound("pid.available<10"),
        bound("memory.available<1Gi", grace="1m", reclaim="5%"),
    ]


def test_an_empty_flag_removes_all_hard_thresholds() -> None:
    assert threshold_texts(KubeletFlags(eviction_hard=("",))) == []


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "kubelet.yaml"
    path.write_text(
        "kind: KubeletConfiguration\n"
        "evictionHard: {nodefs.available: 10%}\n"
        "evictionSoft: {memory.available: 1Gi}\n"
        "evictionSoftGracePeriod: {memory.available: 1m}\n"
    )
    return str(path)


def test_flags_override_the_file(file: str) -> None:
    assert threshold_texts(KubeletFlags(file)) == ["nodefs.available<10%", "memory.available<1Gi"]
    assert threshold_texts(KubeletFlags(file, eviction_hard=("pid.available<9",))) == [
        "pid.available<9",
        "memory.available<1Gi",
    ]


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (
            KubeletFlags(eviction_hard=("memory.available",)),
            "--eviction-hard: malformed pair, expect string<string: memory.available",
        ),
        (
            KubeletFlags(grace_period=("memory.available<1m",)),
            "--grace-period: malformed pair, expect string=string: memory.available<1m",
        ),
        (
            KubeletFlags(eviction_hard=("memory.available<1ki",)),
            "--eviction-hard memory.available<1ki: unable to parse quantity's suffix",
        ),
        (
            KubeletFlags(eviction_soft=("memory<1",)),
            "--eviction-soft memory<1: unsupported eviction signal memory",
        ),
        (
            KubeletFlags(eviction_soft=("memory.available<1Gi",)),
            (
                "--eviction-soft: grace period must be specified for the soft eviction threshold "
                "memory.available"
            ),
        ),
        (
            KubeletFlags(minimum_reclaim=("memory.available=-1",)),
            (
                "--minimum-reclaim memory.available=-1: "
                "negative eviction minimum reclaim specified for memory.available"
            ),
        ),
    ],
)
def test_an_error_is_reported_with_its_flag(flags: KubeletFlags, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        configured(flags)
    assert str(raised.value) == problem


def test_an_error_in_the_file_is_reported_with_its_field(file: str, tmp_path: Path) -> None:
    flags = KubeletFlags(file, grace_period=())
    with pytest.raises(ConfigError) as raised:
        configured(flags)
    assert str(raised.value).startswith(f"{file}: evictionSoft: grace period must be specified")
    Path(file).write_text("evictionHard: {memory.available: 0}")
    with pytest.raises(ManifestError, match=r"evictionHard\[\.\.\.\]: expected str, got int"):
        configured(KubeletFlags(file))
    Path(file).write_text("evictionHard: {memory.available: '0'}")
    with pytest.raises(ConfigError) as raised:
        configured(KubeletFlags(file))
    assert str(raised.value) == (
        f"{file}: evictionHard[memory.available]: "
        "eviction threshold memory.available must be positive: 0"
    )
    empty = tmp_path / "empty.yaml"
    empty.write_text("")
    with pytest.raises(ManifestError, match="holds 0 documents; expected exactly one"):
        configured(KubeletFlags(str(empty)))
