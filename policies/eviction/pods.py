"""A pod as the eviction manager reads it: requests, limits, and whether it can be evicted.

Requests are in bytes, rounded up; since usage is in whole bytes, rounding only matters for requests
of less than a byte.

Sources: GetResourceRequestQuantity in pkg/api/v1/resource/helpers.go, PodLimits in
k8s.io/component-helpers/resource, IsCriticalPod in pkg/kubelet/types/pod_update.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from policies.eviction.values import ZERO_QUANTITY, Quantity
from policies.selectors import Toleration

CRITICAL_PRIORITY: Final = 2_000_000_000
_FROM_THE_API: Final = "api"


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
