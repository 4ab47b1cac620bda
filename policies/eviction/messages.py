"""The texts of an eviction: the pod's message, the annotations of its event, its status.

Every sentence ends with a space, as upstream's do:

    The node was low on resource: memory. Threshold quantity: 100Mi, available: 48Mi. Container
    main was using 700Mi, request is 100Mi, has larger consumption of memory.

Quantities of thresholds and requests keep the form in which a component decoded them; measured
amounts have the canonical form. Init containers and sidecars are reported like any other container,
in the order of the stats.

Source: evictionMessage in pkg/kubelet/eviction/helpers.go, evictPod in eviction_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from policies.eviction.observations import BYTE_SIGNALS, Observations
from policies.eviction.pods import Container, EvictablePod
from policies.eviction.signals import RESOURCES, Quantity, Resource, Signal
from policies.eviction.stats import ContainerStats, PodStats
from policies.eviction.thresholds import Threshold
from policies.kubernetes.quantity import NANOS, format_binary, format_decimal

REASON: Final = "Evicted"
"""The reason of the pod's status, of its event, and of a rejected admission."""

THRESHOLD_MET: Final = "EvictionThresholdMet"
"""The reason of the node's event; its message is :func:`reclaim_event_message`."""


@dataclass(frozen=True, slots=True)
class EvictedPodCondition:
    """A condition in the status of an evicted pod; its message is the eviction's."""

    type: str
    status: str
    reason: str


DISRUPTION_TARGET: Final = EvictedPodCondition("DisruptionTarget", "True", "TerminationByKubelet")


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod to evict, with its grace period and texts.

    The pod's status becomes ``Failed`` with ``REASON`` and ``message``. A pod that is evicted
    because its node runs short also gets ``condition``, with the observedGeneration ``generation``
    if the release sets it. ``annotations`` are those of its event.
    """

    pod: EvictablePod
    grace_seconds: int
    message: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    condition: EvictedPodCondition | None = None
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class ResourceShortage:
    """The resource that a node is short of, with the triggered thresholds and the observations."""

    resource: Resource
    thresholds: Sequence[Threshold]
    observations: Observations


def reclaim_event_message(resource: Resource) -> str:
    """Return the message of the node's event."""
    return f"Attempting to reclaim {resource}"


def format_available(signal: Signal, amount: int) -> str:
    """Format an amount that a signal observes: bytes in binary units, all else as a count."""
    return format_binary(amount) if signal in BYTE_SIGNALS else format_decimal(amount)


def eviction_message(
    pod: EvictablePod, stats: PodStats | None, shortage: ResourceShortage
) -> tuple[str, Mapping[str, str]]:
    """Return why a pod is evicted, with the annotations of the event."""
    parts = [f"The node was low on resource: {shortage.resource}. ", _threshold(shortage)]
    if stats is None:
        return "".join(parts), {}
    annotations: dict[str, str] = {}
    whole = pod.pod_memory_request
    if shortage.resource is Resource.MEMORY and whole and stats.working_set is not None:
        usage = format_binary(stats.working_set)
        parts.append(_larger("Pod", pod.name, usage, whole.text, shortage.resource))
        annotations |= {"offending_pod": pod.name, "offending_pod_usage": usage}
    offenders = list(_offenders(pod, stats, shortage.resource))
    parts.extend(
        _larger("Container", name, usage, request, shortage.resource)
        for name, usage, request in offenders
    )
    annotations["offending_containers"] = ",".join(name for name, _, _ in offenders)
    annotations["offending_containers_usage"] = ",".join(usage for _, usage, _ in offenders)
    annotations["starved_resource"] = shortage.resource
    return "".join(parts), annotations


def _threshold(shortage: ResourceShortage) -> str:
    for threshold in shortage.thresholds:
        found = shortage.observations.get(threshold.signal)
        if RESOURCES[threshold.signal] is shortage.resource and found is not None:
            quantity = threshold.value.formatted(found.capacity)
            left = format_available(threshold.signal, found.available)
            return f"Threshold quantity: {quantity}, available: {left}. "
    return ""


def _larger(what: str, name: str, usage: str, request: str, resource: Resource) -> str:
    return (
        f"{what} {name} was using {usage}, request is {request}, "
        f"has larger consumption of {resource}. "
    )


def _offenders(
    pod: EvictablePod, stats: PodStats, resource: Resource
) -> Iterator[tuple[str, str, str]]:
    """Return name, usage and request of containers that use more than they request."""
    known = {container.name: container for container in reversed(pod.containers)}
    for measured in stats.containers:
        container = known.get(measured.name)
        usage = None if container is None else _usage(measured, resource)
        if container is None or usage is None:
            continue
        request = _request(container, resource)
        if usage * NANOS > request.nanos:
            yield container.name, format_binary(usage), request.text


def _usage(container: ContainerStats, resource: Resource) -> int | None:
    if resource is Resource.MEMORY:
        return container.working_set
    layer, logs = container.rootfs, container.logs
    if resource is not Resource.STORAGE or layer is None or logs is None:
        return None
    return None if layer.used is None or logs.used is None else layer.used + logs.used


def _request(container: Container, resource: Resource) -> Quantity:
    return container.memory_request if resource is Resource.MEMORY else container.storage_request
