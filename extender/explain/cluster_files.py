"""A cluster, or a ReplicaSet and its pods, decoded from the objects of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec
from msgspec import structs

from extender.cluster.object_stores import ObjectStore
from extender.cluster.policy_objects import PolicyObjectStores
from extender.cluster.preemption_history import PreemptionHistory
from extender.cluster.scheduler_cache import SchedulerCache
from extender.cluster.storage_stores import StorageStore, StorageStores
from extender.explain.cluster_objects import ClusterObjects
from extender.kube.decoders import devices, storage
from extender.kube.decoders.autoscaler_events import decode_autoscaler_event
from extender.kube.decoders.cluster_objects import (
    WORKLOAD_DECODERS,
    PriorityClass,
    decode_budget,
    decode_namespace,
    decode_node,
    decode_priority_class,
)
from extender.kube.decoders.manifests import Manifest, ManifestError, decode_manifests
from extender.kube.decoders.pod_groups import decode_composite_pod_group, decode_pod_group
from extender.kube.decoders.pods import NO_KEYS, decode_undefaulted_pod
from extender.kube.decoders.replicasets import decode_member, decode_replica_set
from extender.kube.decoders.resource_quotas import decode_resource_quota
from extender.kube.decoders.typed_decoder import Decode, ObjectError, Unreadable
from policies.kubernetes.default_selector import REPLICA_SET
from policies.kubernetes.input_error import InputError
from policies.kubernetes.policy_objects import EVENT, RESOURCE_QUOTA
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.replicaset import (
    RankedPod,
    ReplicaSet,
    ReplicaSetPod,
    claimed_pods,
    indirectly_related_pods,
    related_pods_per_node,
)

T = TypeVar("T")

_OFTEN_ABSENT = {"CSIDriver", "VolumeAttachment", "DeviceClass", "DeviceTaintRule"}
_SYSTEM_CLASSES = {
    name: PriorityClass(name, value, is_default=False, preempts=True)
    for name, value in (
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    )
}


@dataclass(frozen=True, slots=True)
class LoadedCluster:
    """The objects of a cluster, as far as decisions read them.

    ``unknown_classes`` are the pods without a priority whose PriorityClass is not in the cluster,
    with its name; their priority counts as 0.
    """

    snapshot: Snapshot
    preemptions: PreemptionHistory
    priority_classes: Mapping[str, PriorityClass]
    unknown_classes: Mapping[str, str]

    def at(self, now_ns: int) -> Snapshot:
        """Return the snapshot at a time, in nanoseconds since the epoch."""
        recent = self.preemptions.recent(now_ns)
        return replace(self.snapshot, now_ns=now_ns, preemptions=recent)

    def warnings(self) -> Iterator[str]:
        """Yield a line for each pod whose priority is unknown."""
        for key, name in self.unknown_classes.items():
            yield f"pod {key}: no PriorityClass {name!r}; its priority counts as 0"


class _PriorityFields(msgspec.Struct):
    priority: int | None = None
    priorityClassName: str | None = None  # noqa: N815 - the key as Kubernetes writes it
    preemptionPolicy: str | None = None  # noqa: N815


class _PodWithPriorityFields(msgspec.Struct):
    spec: _PriorityFields


def load_cluster(
    objects: ClusterObjects, release: Release, annotations: frozenset[str] = NO_KEYS
) -> LoadedCluster:
    """Decode the objects of a cluster; pods keep ``annotations``. Raise ManifestError.

    An object that cannot be decoded is skipped with a warning.
    """
    manifests = objects.manifests
    cluster = SchedulerCache(monotonic=lambda: 0.0)
    cluster.namespaces.replace(decode_manifests(manifests, "Namespace", decode_namespace))
    cluster.nodes.replace(decode_manifests(manifests, "Node", decode_node))
    cluster.budgets.replace(decode_manifests(manifests, "PodDisruptionBudget", decode_budget))
    for kind, decode in WORKLOAD_DECODERS.items():
        cluster.workloads[kind].replace(decode_manifests(manifests, kind, decode))
    _load_storage(cluster.storage, manifests)
    groups, composites = cluster.pod_groups.groups, cluster.pod_groups.composites
    groups.replace(decode_manifests(manifests, "PodGroup", decode_pod_group))
    composites.replace(decode_manifests(manifests, "CompositePodGroup", decode_composite_pod_group))
    quotas = decode_manifests(manifests, RESOURCE_QUOTA, decode_resource_quota)
    cluster.policy_objects.quotas.replace(quotas)
    _load_events(cluster.policy_objects, manifests)
    classes = priority_classes(manifests)
    unknown_classes: dict[str, str] = {}

    def read_pod(raw: bytes) -> Pod:
        # A running pod has passed admission. Only a pod from a hand-written file may lack the
        # priority of the class that it names; without a class, its priority is 0, as upstream.
        pod = _decode_pod_with_uid(raw, release, annotations)
        fields = _priority_fields(raw)
        named = fields.priorityClassName
        if named and named not in classes and fields.priority is None:
            unknown_classes[pod.key] = named
        return _with_class_priority(pod, fields, classes) if named in classes else pod

    cluster.pods.replace(decode_manifests(manifests, "Pod", read_pod))
    return LoadedCluster(cluster.snapshot(), cluster.preemptions, classes, unknown_classes)


def priority_classes(manifests: Iterable[Manifest]) -> Mapping[str, PriorityClass]:
    """Return the PriorityClasses by name, with the two system classes of every cluster."""
    found = decode_manifests(manifests, "PriorityClass", decode_priority_class)
    return {
        **_SYSTEM_CLASSES,
        **{each.name: each for each in found if isinstance(each, PriorityClass)},
    }


def priority_of_class(raw: bytes, classes: Mapping[str, PriorityClass]) -> int | None:
    """Return the priority of a pod's class if the pod has none of its own, otherwise None."""
    fields = _priority_fields(raw)
    named = classes.get(fields.priorityClassName or "")
    return named.value if named is not None and fields.priority is None else None


def _load_storage(stores: StorageStores, manifests: Sequence[Manifest]) -> None:
    """Fill the storage stores; a kind without an object in the files counts as unknown.

    Those that a cluster may have none of always count as listed.
    """
    kinds = {manifest.kind for manifest in manifests} | _OFTEN_ABSENT

    def load(kind: str, decode: Decode[T], store: StorageStore[T]) -> None:
        if kind in kinds:
            store.replace(decode_manifests(manifests, kind, decode))

    load("PersistentVolumeClaim", storage.decode_claim, stores.claims)
    load("PersistentVolume", storage.decode_volume, stores.volumes)
    load("StorageClass", storage.decode_storage_class, stores.classes)
    load("CSINode", storage.decode_csi_node, stores.csi_nodes)
    load("CSIDriver", storage.decode_csi_driver, stores.drivers)
    load("CSIStorageCapacity", storage.decode_storage_capacity, stores.capacities)
    load("VolumeAttachment", storage.decode_volume_attachment, stores.attachments)
    load("ResourceClaim", devices.decode_resource_claim, stores.devices)
    load("ResourceSlice", devices.decode_resource_slice, stores.slices)
    load("DeviceClass", devices.decode_device_class, stores.device_classes)
    load("DeviceTaintRule", devices.decode_device_taint_rule, stores.taint_rules)


def _load_events(stores: PolicyObjectStores, manifests: Sequence[Manifest]) -> None:
    """Fill the stores of the events of autoscalers; any other event is left out."""
    events = decode_manifests(manifests, EVENT, decode_autoscaler_event)
    for reason, store in stores.events.items():
        store.replace(
            [each for each in events if isinstance(each, Unreadable) or each.reason == reason]
        )


def load_pod(
    written: Manifest,
    cluster: LoadedCluster,
    release: Release,
    annotations: frozenset[str] = NO_KEYS,
) -> Pod:
    """Return a pod with the priority that admission would set; it keeps ``annotations``.

    Raise ManifestError, also if the pod cannot be decoded.
    """
    try:
        pod = _decode_pod_with_uid(written.raw, release, annotations)
    except ObjectError as error:
        raise ManifestError(f"{written.source}: {error}") from None
    fields = _priority_fields(written.raw)
    known = (None, "", *cluster.priority_classes)
    if fields.priority is None and fields.priorityClassName not in known:
        raise ManifestError(
            f"{written.source}: spec.priorityClassName: no PriorityClass "
            f"{fields.priorityClassName!r} in the cluster"
        )
    return _with_class_priority(pod, fields, cluster.priority_classes)


def _decode_pod_with_uid(raw: bytes, release: Release, annotations: frozenset[str]) -> Pod:
    """Decode a pod; one without a UID gets its key as UID, since pods are identified by it."""
    pod = decode_undefaulted_pod(raw, release, annotations)
    return pod if pod.uid else structs.replace(pod, uid=pod.key)


def _with_class_priority(
    pod: Pod, fields: _PriorityFields, classes: Mapping[str, PriorityClass]
) -> Pod:
    """Apply the Priority admission plugin: a pod without a priority gets that of its class."""
    if fields.priority is not None:
        return pod
    named = fields.priorityClassName
    chosen = classes.get(named) if named else _default_class(classes)
    if chosen is None:
        return pod
    preempts = chosen.preempts if fields.preemptionPolicy is None else pod.preempts
    return structs.replace(pod, priority=chosen.value, preempts=preempts)


def _priority_fields(raw: bytes) -> _PriorityFields:
    return msgspec.json.decode(raw, type=_PodWithPriorityFields).spec


def _default_class(classes: Mapping[str, PriorityClass]) -> PriorityClass | None:
    defaults = [each for each in classes.values() if each.is_default]
    return min(defaults, key=lambda each: each.value, default=None)


class ReplicaFileError(InputError, ValueError):
    """A ReplicaSet is not found, cannot be decoded, or has too few pods; the text has which."""


@dataclass(frozen=True, slots=True)
class ReplicaSetPods:
    """The pods that a ReplicaSet may delete, as the files list them.

    ``crowding`` counts the active related pods by node.
    """

    active: Sequence[RankedPod]
    crowding: Mapping[str, int]


def load_replica_set_pods(objects: ClusterObjects, key: str, count: int) -> ReplicaSetPods:
    """Return the pods that the ReplicaSet ``key`` can delete, at least ``count``.

    Raise ManifestError and ReplicaFileError. Any other object that cannot be decoded is skipped
    with a warning.
    """
    place, manifests = objects.source, objects.manifests
    sets = _replica_sets(manifests, key)
    one = sets.by_key.get(key)
    if one is None:
        raise ReplicaFileError(f"--replicaset: no ReplicaSet {key!r} in {place}")
    pods: ObjectStore[ReplicaSetPod] = ObjectStore(lambda pod: pod.key)
    pods.replace(decode_manifests(manifests, "Pod", decode_member))
    active = claimed_pods(one, pods.view())
    if count > len(active):
        raise ReplicaFileError(
            f"--delete: {count}; expected at most {len(active)}, "
            f"as many active pods as ReplicaSet {key} has in {place}"
        )
    return ReplicaSetPods(
        active, related_pods_per_node(indirectly_related_pods(one, sets.view(), pods.view()))
    )


def _replica_sets(manifests: Sequence[Manifest], key: str) -> ObjectStore[ReplicaSet]:
    written = [manifest for manifest in manifests if manifest.kind == REPLICA_SET]
    found = decode_manifests(written, REPLICA_SET, decode_replica_set)
    for manifest, each in zip(written, found, strict=True):
        if isinstance(each, Unreadable) and each.key in (key, key.removeprefix("default/")):
            raise ReplicaFileError(f"{manifest.source}: {each.problem}")
    sets: ObjectStore[ReplicaSet] = ObjectStore(lambda each: each.key)
    sets.replace(found)
    return sets
