"""A pod as the eviction manager reads it: requests, limits, and whether it can be evicted.

Requests are in bytes, rounded up; since usage is in whole bytes, rounding only matters for requests
of less than a byte. The sum of a pod's requests is nearly kube-scheduler's, but is based on the
spec alone, and the pod's overhead is added only to a sum that is not zero. Up to 1.33 sidecars were
left out:

    containers 100Mi + 50Mi, a sidecar 200Mi     up to 1.33: 200Mi     since 1.34: 350Mi

Pod-level resources replace what the containers request, also of local storage, which pod-level
resources cannot contain.

Sources: GetResourceRequestQuantity in pkg/api/v1/resource/helpers.go; PodLimits in
k8s.io/component-helpers/resource; ComputePodQOS in pkg/apis/core/v1/helper/qos; IsCriticalPod in
pkg/kubelet/types/pod_update.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from policies.eviction.kubelet_releases import EvictionRelease
from policies.eviction.signals import ZERO_QUANTITY, Quantity, Resource
from policies.kubernetes.pod_requests import (
    Amounts,
    ContainerRequests,
    PodResources,
    container_spec_total,
    is_pod_level,
)
from policies.kubernetes.selectors import Toleration

CRITICAL_PRIORITY: Final = 2_000_000_000
_FROM_THE_API: Final = "api"

_QOS_RESOURCES: Final = ("cpu", "memory")
"""The resources that determine a pod's quality of service."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container, init container or sidecar.

    ``storage_limit`` is its own limit of local storage, None if no limit is enforced.
    """

    name: str
    memory_request: Quantity = ZERO_QUANTITY
    storage_request: Quantity = ZERO_QUANTITY
    storage_limit: Quantity | None = None


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume.

    ``local`` is whether it uses the node's disks. ``size_limit`` is the size limit of an emptyDir,
    ``in_memory`` whether its medium is memory.
    """

    name: str
    local: bool = False
    size_limit: Quantity | None = None
    in_memory: bool = False


@dataclass(frozen=True, slots=True)
class EvictablePod:
    """A pod that runs on a node.

    ``containers`` are those that messages name. ``memory_request`` and ``storage_request`` are the
    pod's total requests; ``pod_memory_request`` is the pod-level request, if there is one;
    ``storage_limit`` is the sum of the containers' limits. ``source`` is the config source of the
    kubelet's annotation, if present; ``mirror`` is whether the pod is a mirror of a static pod.
    """

    namespace: str
    name: str
    uid: str
    priority: int = 0
    source: str | None = None
    mirror: bool = False
    best_effort: bool = False
    tolerations: tuple[Toleration, ...] = ()
    grace_seconds: int | None = None
    generation: int = 0
    memory_request: int = 0
    storage_request: int = 0
    pod_memory_request: Quantity | None = None
    storage_limit: Quantity | None = None
    containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = field(default=())

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def critical(self) -> bool:
        """Whether the pod is never evicted: static, a mirror pod, or of a system priority.

        A static pod without a system priority is not evicted either, contrary to the documentation.
        """
        static = self.source is not None and self.source != _FROM_THE_API
        return static or self.mirror or self.priority >= CRITICAL_PRIORITY


@dataclass(frozen=True, slots=True)
class KubeletRequests:
    """A pod's requests, and its limits in the same form."""

    requests: PodResources
    limits: PodResources

    @property
    def has_pod_level(self) -> bool:
        """Whether the pod has pod-level resources."""
        return any(map(is_pod_level, (*self.requests.pod_level, *self.limits.pod_level)))


def requested_nanos(
    resources: KubeletRequests, resource: Resource, release: EvictionRelease
) -> int:
    """Return the pod's request of a resource, in nanos."""
    pod = resources.requests
    if not release.counts_sidecars:
        total = _without_sidecars(pod, resource)
    else:
        whole = resources.has_pod_level and release.pod_level_resources
        total = 0 if whole else container_spec_total(pod).get(resource, 0)
        if is_pod_level(resource):
            total = pod.pod_level.get(resource, total)
    return total + (pod.overhead.get(resource, 0) if total else 0)


def reports_pod_memory_request(resources: KubeletRequests, release: EvictionRelease) -> bool:
    """Return whether messages report the pod-level memory request."""
    return release.pod_level_resources and Resource.MEMORY in resources.requests.pod_level


def storage_limit_nanos(resources: KubeletRequests) -> int | None:
    """Return the sum of a pod's limits of local storage, in nanos; None if there are none.

    Overhead is added to a sum that is not zero.
    """
    total = container_spec_total(resources.limits).get(Resource.STORAGE)
    return total and total + resources.limits.overhead.get(Resource.STORAGE, 0)


def is_best_effort(resources: KubeletRequests, release: EvictionRelease) -> bool:
    """Return whether a pod neither requests nor limits cpu or memory."""
    if resources.has_pod_level and release.pod_level_resources:
        return not any(_is_set(each.pod_level) for each in (resources.requests, resources.limits))
    containers = (
        container
        for each in (resources.requests, resources.limits)
        for container in (*each.containers, *each.init_containers)
    )
    return not any(_is_set(container.spec) for container in containers)


def _is_set(amounts: Amounts) -> bool:
    return any(amounts.get(name) for name in _QOS_RESOURCES)


def _without_sidecars(pod: PodResources, resource: Resource) -> int:
    def request(container: ContainerRequests) -> int:
        return container.spec.get(resource, 0)

    return max(sum(map(request, pod.containers)), *map(request, pod.init_containers), 0)
