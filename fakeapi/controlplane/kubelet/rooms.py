"""The resources that are allocated on a node: the requests and host ports of its pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fakeapi.controlplane.kubelet.shapes import KubeletPod as Shape
from policies.filtering.node_ports import ports_conflict
from policies.model import NO_RESOURCES, HostPort, Pod, Resources

CRITICAL_PRIORITY: Final = 2_000_000_000
_SOURCE: Final = "kubernetes.io/config.source"
_MIRROR: Final = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class AllocatedPod:
    """A pod on a node; a critical pod is never preempted, and preempts others.

    Source: IsCriticalPod in pkg/kubelet/types/pod_update.go.
    """

    uid: str
    requests: Resources
    ports: frozenset[HostPort]
    priority: int = 0
    qos_class: str = ""
    critical: bool = False

    @classmethod
    def of(cls, pod: Pod, shape: Shape) -> AllocatedPod:
        """Return the allocation of a pod."""
        annotations = shape.metadata.annotations or {}
        static = annotations.get(_SOURCE, "api") != "api"
        critical = static or _MIRROR in annotations or pod.priority >= CRITICAL_PRIORITY
        quality = shape.status.qos_class
        return cls(pod.uid, pod.requests, pod.host_ports, pod.priority, quality, critical)


@dataclass(slots=True)
class NodeAllocation:
    """The admitted pods of a node, by UID, and the sum of their requests."""

    pods: dict[str, AllocatedPod] = field(default_factory=dict)
    requested: Resources = NO_RESOURCES
    _ports: Counter[HostPort] = field(default_factory=Counter)

    @property
    def ports(self) -> Collection[HostPort]:
        """The ports in use."""
        return self._ports.keys()

    def add(self, tenant: AllocatedPod) -> None:
        """Add a pod."""
        self.remove(tenant.uid)
        self.pods[tenant.uid] = tenant
        self.requested += tenant.requests
        self._ports.update(tenant.ports)

    def remove(self, uid: str) -> None:
        """Remove a pod, if it is present."""
        tenant = self.pods.pop(uid, None)
        if tenant is not None:
            self.requested -= tenant.requests
            self._ports -= Counter(tenant.ports)

    def has_port_conflict(self, ports: Iterable[HostPort]) -> bool:
        """Return whether one of the ports conflicts with a port in use."""
        return any(ports_conflict(wanted, used) for wanted in ports for used in self._ports)


def resource_amounts(resources: Resources) -> Mapping[str, int]:
    """Return amounts by resource name: milliCPU, and whole units of the others."""
    return {
        "cpu": resources.milli_cpu,
        "memory": resources.memory,
        "ephemeral-storage": resources.ephemeral_storage,
        **resources.scalars,
    }
