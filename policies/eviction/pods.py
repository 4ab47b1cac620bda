"""A pod as eviction sees it: what it asks for, what it may use, and whether it can be evicted.

Requests are in bytes, rounded up; as usage comes in whole bytes, that makes no difference but where
somebody asks for less than a byte.

Sources: GetResourceRequestQuantity in pkg/api/v1/resource/helpers.go, PodLimits in
k8s.io/component-helpers/resource, IsCriticalPod in pkg/kubelet/types/pod_update.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from policies.eviction.values import NOTHING, Quantity
from policies.selectors import Toleration

CRITICAL_PRIORITY: Final = 2_000_000_000
_FROM_THE_API: Final = "api"


@dataclass(frozen=True, slots=True)
class Container:
    """A container, init container or sidecar.

    ``storage_limit`` is its own limit of local storage, None if there is none that is kept to.
    """

    name: str
    memory_request: Quantity = NOTHING
    storage_request: Quantity = NOTHING
    storage_limit: Quantity | None = None


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume.

    ``local`` is one that takes room on the node's disks. ``size_limit`` is how large an emptyDir
    may be, ``in_memory`` that it is kept in memory.
    """

    name: str
    local: bool = False
    size_limit: Quantity | None = None
    in_memory: bool = False


@dataclass(frozen=True, slots=True)
class EvictablePod:
    """A pod that runs on a node.

    ``containers`` are those that messages speak of, ``memory_request`` and ``storage_request`` what
    all of them request together; ``pod_memory_request`` is the one of the pod as a whole, if it has
    one; ``storage_limit`` the sum of their limits. ``source`` is where the kubelet has the pod from
    if an annotation tells, ``mirror`` whether it only mirrors a static pod.
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
        """Whether no pressure moves it: static, a mirror, or of a system priority.

        A static pod that is not of a system priority is not evicted either, whatever the
        documentation says.
        """
        static = self.source is not None and self.source != _FROM_THE_API
        return static or self.mirror or self.priority >= CRITICAL_PRIORITY
