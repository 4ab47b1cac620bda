"""v1.Pod decoded to the scheduler's Pod, with requests summed and selectors compiled once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from extender.kube.decoders import core_v1_types, pod_resources
from extender.kube.decoders.in_tree_volumes import disks_of
from extender.kube.decoders.pod_specs import decode_spec, merge_label_keys, node_affinity
from extender.kube.decoders.typed_decoder import FINISHED, decode_object
from policies.kubernetes.default_selector import (
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    PodOwner,
)
from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.releases import Release
from policies.kubernetes.selectors import Labels
from policies.kubernetes.snapshot import DEFAULT_SCHEDULER, Pod
from policies.kubernetes.storage import ClaimVolume, DeviceClaim, Disk, PodStorage

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST_NS = 2**63 - 1

NO_KEYS: Final = frozenset[str]()
NO_LABELS: Final[Labels] = {}

_FOLLOWED = {("v1", REPLICATION_CONTROLLER), ("apps/v1", REPLICA_SET), ("apps/v1", STATEFUL_SET)}

_pods = msgspec.json.Decoder(core_v1_types.PodV1)


def decode_pod(raw: bytes, release: Release, annotations: frozenset[str] = NO_KEYS) -> Pod:
    """Decode a v1.Pod; its requests are summed by the rules of ``release``. Raise ObjectError.

    Of its annotations, those with the keys ``annotations`` are kept.
    """
    return decode_object("Pod", _pods, raw, lambda shape: _pod(shape, release, annotations))


def decode_undefaulted_pod(
    raw: bytes, release: Release, annotations: frozenset[str] = NO_KEYS
) -> Pod:
    """Decode a v1.Pod that no API server may have defaulted yet. Raise ObjectError.

    One without a UID has not been created by an API server. See :func:`decode_pod`.
    """

    def convert(shape: core_v1_types.PodV1) -> Pod:
        pod_resources.default_requests(shape.spec)
        if not shape.metadata.uid:
            merge_label_keys(shape)
        return _pod(shape, release, annotations)

    return decode_object("Pod", _pods, raw, convert)


def epoch_ns(moment: datetime) -> int:
    """Return nanoseconds since the epoch; a time without a zone is UTC.

    int64 holds the years 1678 to 2262. Times outside are clamped to the minimum or maximum; the
    minimum can be negated, too.
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    exact = (aware - _EPOCH) // _MICROSECOND * 1000
    return max(-_LAST_NS, min(exact, _LAST_NS))


def _pod(shape: core_v1_types.PodV1, release: Release, annotations: frozenset[str]) -> Pod:
    meta, spec, status = shape.metadata, shape.spec, shape.status or core_v1_types.PodStatusV1()
    namespace = _shared_text(meta.namespace or "default")
    conditions = status.conditions or ()
    preempted = _preempted(conditions)
    decoded = decode_spec(shape, namespace, release)
    return Pod(
        namespace=namespace,
        name=meta.name,
        uid=meta.uid or "",
        labels=_shared_labels(tuple(meta.labels.items())) if meta.labels else NO_LABELS,
        priority=spec.priority or 0,
        preempts=spec.preemptionPolicy != "Never",
        node_name=_shared_text(spec.nodeName) if spec.nodeName else None,
        nominated_node=status.nominatedNodeName or None,
        started_ns=None if status.startTime is None else epoch_ns(status.startTime),
        terminating=meta.deletionTimestamp is not None,
        preempted=preempted is not None,
        may_be_assumed=_may_be_assumed(spec, status, release),
        resize_deferred=_is_resize_deferred(spec, status, release),
        finished=status.phase in FINISHED,
        requests=decoded.requests,
        resource_names=decoded.resource_names,
        host_ports=decoded.host_ports,
        node_selector=decoded.node_selector,
        node_affinity=node_affinity(spec.affinity) if spec.affinity else None,
        tolerations=decoded.tolerations,
        affinity=decoded.affinity,
        anti_affinity=decoded.anti_affinity,
        spread=decoded.spread,
        soft_spread=decoded.soft_spread,
        controller=_controller(meta.ownerReferences or ()),
        extended_requests=decoded.extended_requests,
        storage=_storage(meta.name, spec, status),
        required_features=decoded.required_features,
        scheduler_name=_shared_text(spec.schedulerName or DEFAULT_SCHEDULER),
        group=(spec.schedulingGroup and spec.schedulingGroup.podGroupName) or "",
        priority_class=_shared_text(spec.priorityClassName or ""),
        owner=_owner(meta.ownerReferences or ()),
        annotations=_kept(meta.annotations or {}, annotations),
        ready=any(each.type == "Ready" and each.status == "True" for each in conditions),
        restarts=sum(each.restartCount for each in status.containerStatuses or ()),
        preempted_ns=_transition_ns(preempted),
        waiting_since_ns=_waiting_since(meta, conditions),
    )


# Many pods are on one node, and replicas have equal labels: equal values are one object.
_shared_text = lru_cache(maxsize=32_768)(str)
_shared_labels = lru_cache(maxsize=4096)(dict[str, str])


def _preempted(
    conditions: Iterable[core_v1_types.PodConditionV1],
) -> core_v1_types.PodConditionV1 | None:
    """Return the condition by which kube-scheduler marks its victims."""
    found = next((each for each in conditions if each.type == "DisruptionTarget"), None)
    is_victim = found and (found.status, found.reason) == ("True", "PreemptionByScheduler")
    return found if is_victim else None


def _may_be_assumed(
    spec: core_v1_types.PodSpecV1, status: core_v1_types.PodStatusV1, release: Release
) -> bool:
    """Return whether kube-scheduler may have assumed a pending pod on its nominated node.

    It nominates a pod that waits at Permit or in PreBind, too. A pod with scheduling gates does not
    get there, and one whose last attempt failed is taken for a preemptor that waits for its
    victims. Source: the binding cycle in pkg/scheduler/schedule_one.go.
    """
    if FeatureGate.NOMINATED_NODE_NAME_FOR_EXPECTATION not in release.gates:
        return False
    if spec.nodeName or not status.nominatedNodeName or spec.schedulingGates:
        return False
    return not any(
        (each.type, each.status, each.reason) == ("PodScheduled", "False", "Unschedulable")
        for each in status.conditions or ()
    )


def _is_resize_deferred(
    spec: core_v1_types.PodSpecV1, status: core_v1_types.PodStatusV1, release: Release
) -> bool:
    """Return whether kube-scheduler preempts for the in-place resize of a running pod.

    Source: IsPodResizeDeferred in k8s.io/component-helpers/resource/helpers.go.
    """
    if FeatureGate.IN_PLACE_POD_VERTICAL_SCALING_SCHEDULER_PREEMPTION not in release.gates:
        return False
    reasons = [e.reason for e in status.conditions or () if e.type == "PodResizePending"]
    return bool(spec.nodeName) and reasons[:1] == ["Deferred"]


def _controller(references: Iterable[core_v1_types.OwnerReferenceV1]) -> PodOwner | None:
    for each in references:
        if each.controller:
            followed = (each.apiVersion, each.kind) in _FOLLOWED
            return _interned_owner(each.kind, each.name) if followed else None
    return None


_interned_owner = lru_cache(maxsize=4096)(PodOwner)


def _owner(references: Iterable[core_v1_types.OwnerReferenceV1]) -> PodOwner | None:
    for each in references:
        if each.controller:
            return _interned_owner(each.kind, each.name)
    return None


def _kept(annotations: Mapping[str, str], keys: frozenset[str]) -> Labels:
    return {key: annotations[key] for key in keys if key in annotations} if keys else NO_LABELS


def _waiting_since(
    meta: core_v1_types.ObjectMetaV1, conditions: Iterable[core_v1_types.PodConditionV1]
) -> int:
    refused = next((e for e in conditions if (e.type, e.status) == ("PodScheduled", "False")), None)
    if refused is None:
        return 0 if meta.creationTimestamp is None else epoch_ns(meta.creationTimestamp)
    return _transition_ns(refused)


def _transition_ns(condition: core_v1_types.PodConditionV1 | None) -> int:
    since = None if condition is None else condition.lastTransitionTime
    return 0 if since is None else epoch_ns(since)


def _storage(
    name: str, spec: core_v1_types.PodSpecV1, status: core_v1_types.PodStatusV1
) -> PodStorage | None:
    volumes = tuple(_volumes(name, spec.volumes)) if spec.volumes else ()
    devices = tuple(_devices(spec.resourceClaims, status)) if spec.resourceClaims else ()
    return PodStorage(volumes, devices) if volumes or devices else None


def _volumes(pod: str, volumes: Iterable[core_v1_types.VolumeV1]) -> Iterator[ClaimVolume | Disk]:
    for volume in volumes:
        if volume.persistentVolumeClaim is not None:
            yield ClaimVolume(volume.persistentVolumeClaim.claimName)
        elif volume.ephemeral is not None:
            yield ClaimVolume(f"{pod}-{volume.name}", ephemeral=True)
        else:
            yield from disks_of(volume)


def _devices(
    sources: Iterable[core_v1_types.PodResourceClaimV1], status: core_v1_types.PodStatusV1
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
