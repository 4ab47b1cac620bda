"""v1.Pod decoded to the scheduler's Pod, with requests summed and selectors compiled once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from sys import intern

import msgspec

from extender.kube import asking, placement, shapes
from extender.kube.decoding import FINISHED, decode_object
from extender.kube.disks import disks_of
from policies.model import ANY_ADDRESS, HostPort, Pod
from policies.requests import pod_requests
from policies.selectors import Toleration, equals_all
from policies.storage import ClaimVolume, DeviceClaim, Disk, PodStorage
from policies.upstream import Release
from policies.workloads import REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, PodOwner

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST_NS = 2**63 - 1

_FOLLOWED = {
    ("v1", REPLICATION_CONTROLLER),
    ("apps/v1", REPLICA_SET),
    ("apps/v1", STATEFUL_SET),
}

_NO_AFFINITY = shapes.AffinityV1()
_pods = msgspec.json.Decoder(shapes.PodV1)


def decode_pod(raw: bytes, release: Release) -> Pod:
    """Decode a v1.Pod; its requests are summed by the rules of ``release``. Raise ObjectError."""
    return decode_object("Pod", _pods, raw, lambda shape: _pod(shape, release))


def decode_undefaulted_pod(raw: bytes, release: Release) -> Pod:
    """Decode a v1.Pod that no API server has defaulted yet. Raise ObjectError."""

    def convert(shape: shapes.PodV1) -> Pod:
        asking.default_requests(shape.spec)
        return _pod(shape, release)

    return decode_object("Pod", _pods, raw, convert)


def epoch_ns(moment: datetime) -> int:
    """Return nanoseconds since the epoch; a time without a zone is UTC.

    int64 holds the years 1678 to 2262. Times outside are clamped to the minimum or maximum; the
    minimum can be negated, too.
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    exact = (aware - _EPOCH) // _MICROSECOND * 1000
    return max(-_LAST_NS, min(exact, _LAST_NS))


def _pod(shape: shapes.PodV1, release: Release) -> Pod:
    meta, spec, status = shape.metadata, shape.spec, shape.status or shapes.PodStatusV1()
    namespace = meta.namespace or "default"
    affinity = spec.affinity or _NO_AFFINITY
    constraints = spec.topologySpreadConstraints or ()
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
        requests=pod_requests(asking.pod_resources(spec, status), release),
        resource_names=frozenset(asking.mentioned_resources(spec)),
        host_ports=frozenset(_host_ports(spec, release)),
        node_selector=equals_all(spec.nodeSelector or {}),
        node_affinity=placement.node_affinity(affinity),
        tolerations=tuple(toleration_of(t) for t in spec.tolerations or ()),
        affinity=placement.pod_terms("podAffinity", affinity.podAffinity, meta),
        anti_affinity=placement.pod_terms("podAntiAffinity", affinity.podAntiAffinity, meta),
        spread=placement.hard_constraints(constraints, meta),
        soft_spread=any(each.whenUnsatisfiable != "DoNotSchedule" for each in constraints),
        controller=_controller(meta.ownerReferences or ()),
        storage=_storage(meta.name, spec, status),
        priority_class=intern(spec.priorityClassName or ""),  # many pods share few priority classes
    )


def _preempted(conditions: Iterable[shapes.PodConditionV1]) -> bool:
    for condition in conditions:
        if condition.type == "DisruptionTarget":
            return condition.status == "True" and condition.reason == "PreemptionByScheduler"
    return False


def _host_ports(spec: shapes.PodSpecV1, release: Release) -> Iterator[HostPort]:
    sidecars = [c for c in spec.initContainers or () if c.restartPolicy == "Always"]
    for container in (*(sidecars if release.sidecar_host_ports else ()), *(spec.containers or ())):
        for port in container.ports or ():
            if port.hostPort is not None and port.hostPort > 0:
                yield HostPort(port.hostIP or ANY_ADDRESS, port.protocol or "TCP", port.hostPort)


def _controller(references: Iterable[shapes.OwnerReferenceV1]) -> PodOwner | None:
    for each in references:
        if each.controller:
            followed = (each.apiVersion, each.kind) in _FOLLOWED
            return _interned_owner(each.kind, each.name) if followed else None
    return None


_interned_owner = lru_cache(maxsize=4096)(PodOwner)


def toleration_of(shape: shapes.TolerationV1) -> Toleration:
    """Decode a toleration; equal ones are the same object."""
    return _interned_toleration(
        shape.key or "", shape.operator or "", shape.value or "", shape.effect or ""
    )


_interned_toleration = lru_cache(maxsize=1024)(Toleration)


def _storage(name: str, spec: shapes.PodSpecV1, status: shapes.PodStatusV1) -> PodStorage | None:
    volumes = tuple(_volumes(name, spec.volumes)) if spec.volumes else ()
    devices = tuple(_devices(spec.resourceClaims, status)) if spec.resourceClaims else ()
    return PodStorage(volumes, devices) if volumes or devices else None


def _volumes(pod: str, volumes: Iterable[shapes.VolumeV1]) -> Iterator[ClaimVolume | Disk]:
    for volume in volumes:
        if volume.persistentVolumeClaim is not None:
            yield ClaimVolume(volume.persistentVolumeClaim.claimName)
        elif volume.ephemeral is not None:
            yield ClaimVolume(f"{pod}-{volume.name}", ephemeral=True)
        else:
            yield from disks_of(volume)


def _devices(
    sources: Iterable[shapes.PodResourceClaimV1], status: shapes.PodStatusV1
) -> Iterator[DeviceClaim]:
    """Return the pod's device claims, except those that turned out not to be needed."""
    made = {each.name: each.resourceClaimName for each in status.resourceClaimStatuses or ()}
    for source in sources:
        if source.resourceClaimName is not None:
            yield DeviceClaim(source.name, source.resourceClaimName)
        elif source.resourceClaimTemplateName is None:
            yield DeviceClaim(source.name, None)
        elif made.get(source.name, "") is not None:
            yield DeviceClaim(source.name, made.get(source.name), templated=True)
