"""v1.Pod to the model's Pod: all that scheduling reads of a pod, summed and compiled once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import msgspec

from extender.kube import placement, shapes
from extender.kube.decoding import (
    FINISHED,
    amounts_of,
    decoded,
    reported_amounts,
)
from policies.model import ANY_ADDRESS, HostPort, Pod
from policies.requests import ContainerRequests, PodResources, pod_requests
from policies.selectors import Toleration, equals_all
from policies.upstream import Release

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_NO_AFFINITY = shapes.Affinity()
_pods = msgspec.json.Decoder(shapes.PodShape)


def decode_pod(raw: bytes, release: Release) -> Pod:
    """Read a v1.Pod; its requests are summed by the rules of ``release``. Raises ObjectError."""
    return decoded("Pod", _pods, raw, lambda shape: _pod(shape, release))


def epoch_ns(moment: datetime) -> int:
    """Give nanoseconds since the epoch; a time without a zone counts as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND * 1000


def _pod(shape: shapes.PodShape, release: Release) -> Pod:
    meta, spec, status = shape.metadata, shape.spec, shape.status or shapes.PodStatus()
    namespace = meta.namespace or "default"
    containers = [*(spec.initContainers or ()), *(spec.containers or ())]
    affinity = spec.affinity or _NO_AFFINITY
    return Pod(
        namespace=namespace,
        name=meta.name,
        uid=meta.uid or "",
        labels=meta.labels or {},
        priority=spec.priority or 0,
        preempts=spec.preemptionPolicy != "Never",
        node_name=spec.nodeName or None,
        nominated_node=status.nominatedNodeName or None,
        started_ns=None if status.startTime is None else epoch_ns(status.startTime),
        terminating=meta.deletionTimestamp is not None,
        preempted=_preempted(status.conditions or ()),
        finished=status.phase in FINISHED,
        requests=pod_requests(_resources(spec, status), release),
        resource_names=frozenset(name for c in containers for name in _mentioned(c.resources)),
        host_ports=frozenset(_host_ports(spec, release)),
        node_selector=equals_all(spec.nodeSelector or {}),
        node_affinity=placement.node_affinity(affinity),
        tolerations=tuple(_toleration(t) for t in spec.tolerations or ()),
        affinity=placement.pod_terms("podAffinity", affinity.podAffinity, meta),
        anti_affinity=placement.pod_terms("podAntiAffinity", affinity.podAntiAffinity, meta),
        spread=placement.hard_constraints(spec.topologySpreadConstraints or (), meta),
        filters=frozenset(_filters(spec)),
    )


def _preempted(conditions: Iterable[shapes.Condition]) -> bool:
    for condition in conditions:
        if condition.type == "DisruptionTarget":
            return condition.status == "True" and condition.reason == "PreemptionByScheduler"
    return False


def _resources(spec: shapes.PodSpec, status: shapes.PodStatus) -> PodResources:
    reported = {s.name: s for s in status.initContainerStatuses or ()}
    reported |= {s.name: s for s in status.containerStatuses or ()}
    of_pod, in_force = spec.resources or shapes.Amounts(), status.resources
    return PodResources(
        containers=tuple(_containers("spec.containers", spec.containers, reported)),
        init_containers=tuple(_containers("spec.initContainers", spec.initContainers, reported)),
        overhead=amounts_of("spec.overhead", spec.overhead),
        pod_level=amounts_of("spec.resources.requests", of_pod.requests),
        pod_actuated=reported_amounts("status.resources", in_force.requests if in_force else None),
        pod_allocated=reported_amounts("status.allocatedResources", status.allocatedResources),
        resize_infeasible=_infeasible(status.conditions or ()),
    )


def _infeasible(conditions: Iterable[shapes.Condition]) -> bool:
    pending = next((c for c in conditions if c.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def _containers(
    path: str,
    containers: Sequence[shapes.Container] | None,
    reported: dict[str, shapes.ContainerStatus],
) -> Iterator[ContainerRequests]:
    for index, container in enumerate(containers or ()):
        asked = container.resources or shapes.Amounts()
        status = reported.get(container.name, shapes.ContainerStatus())
        in_force = status.resources
        yield ContainerRequests(
            spec=amounts_of(f"{path}[{index}].resources.requests", asked.requests),
            allocated=reported_amounts("status.allocatedResources", status.allocatedResources),
            actuated=reported_amounts(
                "status.resources.requests", in_force.requests if in_force else None
            ),
            reported=in_force is not None,
            restartable=container.restartPolicy == "Always",
        )


def _mentioned(amounts: shapes.Amounts | None) -> Iterator[str]:
    if amounts is not None:
        yield from amounts.requests or ()
        yield from amounts.limits or ()


def _host_ports(spec: shapes.PodSpec, release: Release) -> Iterator[HostPort]:
    sidecars = [c for c in spec.initContainers or () if c.restartPolicy == "Always"]
    for container in (*(sidecars if release.sidecar_host_ports else ()), *(spec.containers or ())):
        for port in container.ports or ():
            if port.hostPort is not None and port.hostPort > 0:
                yield HostPort(port.hostIP or ANY_ADDRESS, port.protocol or "TCP", port.hostPort)


def _toleration(shape: shapes.TolerationShape) -> Toleration:
    return _interned_toleration(
        shape.key or "", shape.operator or "", shape.value or "", shape.effect or ""
    )


_interned_toleration = lru_cache(maxsize=1024)(Toleration)


def _filters(spec: shapes.PodSpec) -> Iterator[str]:
    for volume in spec.volumes or ():
        if volume.persistentVolumeClaim or volume.ephemeral:
            yield from ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
        if volume.gcePersistentDisk or volume.awsElasticBlockStore or volume.rbd or volume.iscsi:
            yield from ("VolumeRestrictions", "NodeVolumeLimits")
    if spec.resourceClaims:
        yield "DynamicResources"
