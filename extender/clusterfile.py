"""A cluster from files: the same objects and decoders as from an API server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from extender.cluster import SchedulerCache
from extender.kube import storage
from extender.kube.decoding import ObjectError
from extender.kube.manifests import Manifest, ManifestError, decode_manifests, read_manifests
from extender.kube.objects import (
    PriorityClass,
    decode_budget,
    decode_namespace,
    decode_node,
    decode_priority_class,
)
from extender.kube.pods import decode_undefaulted_pod
from extender.kube.workloads import WORKLOAD_DECODERS
from extender.storage_sinks import StorageStore, StorageStores
from policies.model import Pod, Snapshot
from policies.upstream import Release

T = TypeVar("T")

_SYSTEM_CLASSES = {
    name: PriorityClass(name, value, is_default=False, preempts=True)
    for name, value in (
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    )
}


@dataclass(frozen=True, slots=True)
class LoadedCluster:
    """The objects of the files, as far as decisions read them."""

    snapshot: Snapshot
    priority_classes: Mapping[str, PriorityClass]


class _PriorityFields(msgspec.Struct):
    priority: int | None = None
    priorityClassName: str | None = None  # noqa: N815 - the key as Kubernetes writes it
    preemptionPolicy: str | None = None  # noqa: N815


class _PodWithPriorityFields(msgspec.Struct):
    spec: _PriorityFields


def load_cluster(paths: Iterable[str], release: Release) -> LoadedCluster:
    """Read all files as one cluster. Raise ManifestError.

    An object that cannot be decoded is skipped with a warning.
    """
    manifests = [manifest for path in paths for manifest in read_manifests(path)]
    cluster = SchedulerCache(monotonic=lambda: 0.0)
    cluster.namespaces.replace(decode_manifests(manifests, "Namespace", decode_namespace))
    cluster.nodes.replace(decode_manifests(manifests, "Node", decode_node))
    cluster.budgets.replace(decode_manifests(manifests, "PodDisruptionBudget", decode_budget))
    for kind, decode in WORKLOAD_DECODERS.items():
        cluster.workloads[kind].replace(decode_manifests(manifests, kind, decode))
    _load_storage(cluster.storage, manifests)
    classes = priority_classes(manifests)

    def read_pod(raw: bytes) -> Pod:
        # A running pod has passed admission. Only a pod from a hand-written file may lack the
        # priority of the class that it names; without a class, its priority is 0, as upstream.
        pod = _decode_pod_with_uid(raw, release)
        named = _priority_fields(raw).priorityClassName
        return _with_class_priority(pod, raw, classes) if named in classes else pod

    cluster.pods.replace(decode_manifests(manifests, "Pod", read_pod))
    return LoadedCluster(cluster.snapshot(), classes)


def priority_classes(manifests: Iterable[Manifest]) -> Mapping[str, PriorityClass]:
    """Return the PriorityClasses by name, with the two system classes of every cluster."""
    found = decode_manifests(manifests, "PriorityClass", decode_priority_class)
    return {
        **_SYSTEM_CLASSES,
        **{each.name: each for each in found if isinstance(each, PriorityClass)},
    }


def priority_of_class(raw: bytes, classes: Mapping[str, PriorityClass]) -> int | None:
    """Return the priority of a pod's class if the pod has none of its own, otherwise None."""
    asked = _priority_fields(raw)
    named = classes.get(asked.priorityClassName or "")
    return named.value if named is not None and asked.priority is None else None


def _load_storage(tables: StorageStores, manifests: Sequence[Manifest]) -> None:
    """Fill the storage stores; a kind without an object in the files counts as unknown.

    CSIDriver and VolumeAttachment always count as listed, since a cluster may have none of them.
    """
    kinds = {manifest.kind for manifest in manifests} | {"CSIDriver", "VolumeAttachment"}

    def load(kind: str, decode: Callable[[bytes], T], table: StorageStore[T]) -> None:
        if kind in kinds:
            table.replace(decode_manifests(manifests, kind, decode))

    load("PersistentVolumeClaim", storage.decode_claim, tables.claims)
    load("PersistentVolume", storage.decode_volume, tables.volumes)
    load("StorageClass", storage.decode_storage_class, tables.classes)
    load("CSINode", storage.decode_csi_node, tables.csi_nodes)
    load("CSIDriver", storage.decode_csi_driver, tables.drivers)
    load("VolumeAttachment", storage.decode_volume_attachment, tables.attachments)
    load("ResourceClaim", storage.decode_resource_claim, tables.devices)


def load_pod(path: str, cluster: LoadedCluster, release: Release) -> Pod:
    """Return the only pod of a file, with the priority that admission would set.

    Raise ManifestError, also if the pod cannot be decoded.
    """
    pods = [manifest for manifest in read_manifests(path) if manifest.kind == "Pod"]
    if len(pods) != 1:
        raise ManifestError(f"{path}: holds {len(pods)} pods; expected exactly one")
    try:
        pod = _decode_pod_with_uid(pods[0].raw, release)
    except ObjectError as error:
        raise ManifestError(f"{pods[0].source}: {error}") from None
    asked = _priority_fields(pods[0].raw)
    known = (None, "", *cluster.priority_classes)
    if asked.priority is None and asked.priorityClassName not in known:
        raise ManifestError(
            f"{pods[0].source}: spec.priorityClassName: no PriorityClass "
            f"{asked.priorityClassName!r} "
            "in the cluster's files"
        )
    return _with_class_priority(pod, pods[0].raw, cluster.priority_classes)


def _decode_pod_with_uid(raw: bytes, release: Release) -> Pod:
    """Decode a pod; one without a UID gets its key as UID, since pods are identified by it."""
    pod = decode_undefaulted_pod(raw, release)
    return pod if pod.uid else replace(pod, uid=pod.key)


def _with_class_priority(pod: Pod, raw: bytes, classes: Mapping[str, PriorityClass]) -> Pod:
    """Apply the Priority admission plugin: a pod without a priority gets that of its class."""
    asked = _priority_fields(raw)
    if asked.priority is not None:
        return pod
    named = asked.priorityClassName
    chosen = classes.get(named) if named else _default_class(classes)
    if chosen is None:
        return pod
    preempts = chosen.preempts if asked.preemptionPolicy is None else pod.preempts
    return replace(pod, priority=chosen.value, preempts=preempts)


def _priority_fields(raw: bytes) -> _PriorityFields:
    return msgspec.json.decode(raw, type=_PodWithPriorityFields).spec


def _default_class(classes: Mapping[str, PriorityClass]) -> PriorityClass | None:
    defaults = [each for each in classes.values() if each.is_default]
    return min(defaults, key=lambda each: each.value, default=None)
