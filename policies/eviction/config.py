"""The kubelet's eviction configuration, and the values that the kubelet derives from it.

An :class:`EvictionConfig` is the user's configuration. A :class:`ResolvedConfig` is derived from it
once and is shared by all nodes with the same configuration.

Sources: pkg/kubelet/apis/config/v1beta1/defaults.go, loadConfigFile in cmd/kubelet/app/server.go,
defaults_linux.go and the first lines of synchronize in pkg/kubelet/eviction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from policies.eviction.filesystems import ONE_FILESYSTEM, Layout, update_containerfs_thresholds
from policies.eviction.kubelet_releases import NEWEST_EVICTION, SEPARATE_DISK_GC, EvictionRelease
from policies.eviction.thresholds import Threshold, ThresholdFlags, parse_thresholds

_MINUTE: Final = 60 * 10**9

DEFAULT_HARD: Final[Mapping[str, str]] = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}
"""The hard thresholds of a kubelet on Linux that configures none."""

DEFAULT_TRANSITION_NS: Final = 5 * _MINUTE
"""How long a pressure is reported after it was last observed; also the meaning of 0."""

INTERVAL_NS: Final = 10 * 10**9
"""The interval between rounds after a round without an eviction."""

CLEANUP_NS: Final = 30 * 10**9
"""The longest wait for evicted pods to terminate before the next round."""


@dataclass(frozen=True, slots=True)
class EvictionConfig:
    """The eviction settings of a kubelet's configuration, and the filesystem layout of its node.

    ``max_pod_grace_seconds`` bounds the grace period of soft evictions; ``isolates_storage``
    enforces limits of local storage.
    """

    thresholds: tuple[Threshold, ...] = ()
    transition_ns: int = DEFAULT_TRANSITION_NS
    max_pod_grace_seconds: int = 0
    isolates_storage: bool = True
    layout: Layout = ONE_FILESYSTEM
    release: EvictionRelease = NEWEST_EVICTION


DEFAULT_THRESHOLDS: Final = tuple(parse_thresholds(ThresholdFlags(hard=DEFAULT_HARD)))


@dataclass(frozen=True, slots=True)
class ResolvedConfig:
    """A configuration with the values derived from it.

    The first round uses ``first_round_thresholds``, all other rounds ``thresholds``. ``error`` is
    the error of the first round; after that error nothing is ranked or reclaimed.
    """

    config: EvictionConfig
    first_round_thresholds: tuple[Threshold, ...]
    thresholds: tuple[Threshold, ...]
    error: str = ""


def resolve(config: EvictionConfig) -> ResolvedConfig:
    """Derive the values that a kubelet derives in its first round."""
    thresholds, layout = config.thresholds, config.layout
    if layout.separate_containers and not config.release.separate_disk_gc:
        problem = f"{SEPARATE_DISK_GC} is turned off but we still have a split filesystem"
        return ResolvedConfig(config, thresholds, thresholds, problem)
    first, later = update_containerfs_thresholds(thresholds, layout)
    return ResolvedConfig(config, tuple(first), tuple(later))
