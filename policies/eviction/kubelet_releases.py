"""Differences between kubelets of Kubernetes 1.30 to 1.38, as data.

Taken from the sources of v1.30.14, v1.31.14, v1.32.10, v1.33.6, v1.34.2, v1.35.0, v1.36.0 and
v1.37.0 (pkg/kubelet/eviction, pkg/api/v1/resource), with the defaults of the feature gates; 1.38 is
assumed to equal 1.37. Releases before 1.30 are not supported: their messages did not name a
threshold, and no condition marked the evicted pod.

*Volumes in memory.* With the alpha gate, the limit of such a volume is its current size instead of
the size in its spec. v1.37.0 leaves the enforcement to the kernel; since a filesystem in memory
holds no more than its capacity, the effect is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from policies.kubernetes.releases import RELEASES, Release

SEPARATE_DISK_GC: Final = "KubeletSeparateDiskGC"
MEMORY_BACKED_VOLUMES: Final = "InPlacePodVerticalScalingMemoryBackedVolumes"
POD_LEVEL_RESOURCES: Final = "PodLevelResources"


@dataclass(frozen=True, slots=True)
class EvictionRelease:
    """The rules of one minor release of the kubelet, feature gates included."""

    name: str
    immediate_grace_seconds: int  # for hard evictions, and pods over their limits
    respects_pod_grace_period: bool  # the pod's own grace period bounds that of a soft eviction
    reports_init_containers: bool  # messages name init containers and sidecars as well
    reclaims_for_containerfs: bool  # node-level reclaim helps containerfs signals
    counts_sidecars: bool  # requests are summed as in the scheduler
    limits_sidecars: bool  # a sidecar's own limit of local storage is enforced
    observes_generation: bool  # the condition of the evicted pod has an observedGeneration
    merges_defaults: bool  # mergeDefaultEvictionSettings is supported
    separate_disk_gc: bool  # gate: containers and images may be on different disks
    pod_level_resources: bool  # gate: spec.resources replaces what containers request
    memory_backed_volumes: bool = False  # gate: volumes in memory may be resized

    def with_feature_gates(self, gates: Mapping[str, bool]) -> EvictionRelease:
        """Return the same release with these feature gates set; unknown gates are ignored."""
        return replace(
            self,
            separate_disk_gc=gates.get(SEPARATE_DISK_GC, self.separate_disk_gc),
            pod_level_resources=gates.get(POD_LEVEL_RESOURCES, self.pod_level_resources),
            memory_backed_volumes=gates.get(MEMORY_BACKED_VOLUMES, self.memory_backed_volumes),
        )


def _release(minor: int) -> EvictionRelease:
    return EvictionRelease(
        name=f"1.{minor}",
        immediate_grace_seconds=1 if minor >= 31 else 0,
        respects_pod_grace_period=minor >= 32,
        reports_init_containers=minor >= 32,
        reclaims_for_containerfs=minor >= 32,
        counts_sidecars=minor >= 34,
        limits_sidecars=minor >= 37,
        observes_generation=minor >= 34,
        merges_defaults=minor >= 33,
        separate_disk_gc=minor >= 31,
        pod_level_resources=minor >= 34,
    )


EVICTION_RELEASES: Final[Mapping[str, EvictionRelease]] = {
    name: _release(int(name.removeprefix("1."))) for name in RELEASES
}
NEWEST_EVICTION: Final = EVICTION_RELEASES["1.38"]


def eviction_release(release: Release) -> EvictionRelease:
    """Return the kubelet's eviction rules of a release."""
    return EVICTION_RELEASES[release.name]
