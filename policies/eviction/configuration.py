"""What a kubelet was told about eviction, and what follows from it on its node.

A :class:`Configuration` is what people write; a :class:`Plan` is what comes of it, made once and
shared by all nodes that are configured alike.

Sources: pkg/kubelet/apis/config/v1beta1/defaults.go, loadConfigFile in cmd/kubelet/app/server.go,
defaults_linux.go and the first lines of synchronize in pkg/kubelet/eviction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from policies.eviction.filesystems import ONE_FILESYSTEM, Layout, with_containerfs
from policies.eviction.releases import NEWEST_EVICTION, SEPARATE_DISK_GC, EvictionRelease
from policies.eviction.thresholds import Threshold, ThresholdTexts, parse_thresholds

_MINUTE: Final = 60 * 10**9

DEFAULT_HARD: Final[Mapping[str, str]] = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}
"""The hard thresholds of a kubelet on Linux that was told none."""

DEFAULT_TRANSITION_NS: Final = 5 * _MINUTE
"""How long a pressure is reported after it was last seen; also what 0 stands for."""

INTERVAL_NS: Final = 10 * 10**9
"""How long a kubelet waits between two rounds in which nobody was evicted."""

CLEANUP_NS: Final = 30 * 10**9
"""How long it waits for pods that it has evicted to be gone, at most, before the next round."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What concerns eviction in a kubelet's configuration, and its node's filesystems.

    ``max_pod_grace_seconds`` bounds what soft evictions grant; ``isolates_storage`` whether limits
    of local storage are kept to.
    """

    thresholds: tuple[Threshold, ...] = ()
    transition_ns: int = DEFAULT_TRANSITION_NS
    max_pod_grace_seconds: int = 0
    isolates_storage: bool = True
    layout: Layout = ONE_FILESYSTEM
    release: EvictionRelease = NEWEST_EVICTION


DEFAULT_THRESHOLDS: Final = tuple(parse_thresholds(ThresholdTexts(hard=DEFAULT_HARD)))


@dataclass(frozen=True, slots=True)
class Plan:
    """A configuration with what is derived from it.

    ``first`` are the thresholds that the first round goes by, ``later`` those of all other rounds.
    ``refusal`` is why the first round fails; then nothing is ever ranked or reclaimed.
    """

    configuration: Configuration
    first: tuple[Threshold, ...]
    later: tuple[Threshold, ...]
    refusal: str = ""


def planned(configuration: Configuration) -> Plan:
    """Derive what a kubelet derives in its first round."""
    given, layout = configuration.thresholds, configuration.layout
    if layout.separate_containers and not configuration.release.separate_disk_gc:
        problem = f"{SEPARATE_DISK_GC} is turned off but we still have a split filesystem"
        return Plan(configuration, given, given, problem)
    first, later = with_containerfs(given, layout)
    return Plan(configuration, tuple(first), tuple(later))
