"""Builders of documents as Kubernetes writes them: metadata, spec and status with defaults.

``metadata``, ``spec`` and ``status`` add or override any field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from policies.testing.values import NO_LABELS, taint

Document = dict[str, Any]

_CLUSTER_SCOPED: Final = (
    "CSIDriver",
    "CSINode",
    "ClusterRole",
    "CustomResourceDefinition",
    "DeviceClass",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "ResourceSlice",
    "StorageClass",
)
_API_VERSIONS: Final = {
    "CSIDriver": "storage.k8s.io/v1",
    "CSINode": "storage.k8s.io/v1",
    "CSIStorageCapacity": "storage.k8s.io/v1",
    "CloneSet": "apps.kruise.io/v1alpha1",
    "ClusterRole": "rbac.authorization.k8s.io/v1",
    "CompositePodGroup": "scheduling.k8s.io/v1alpha3",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "CronJob": "batch/v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "DeviceClass": "resource.k8s.io/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "Job": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "Lease": "coordination.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "PodGroup": "scheduling.k8s.io/v1beta1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ReplicaSet": "apps/v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "ResourceSlice": "resource.k8s.io/v1",
    "Role": "rbac.authorization.k8s.io/v1",
    "StatefulSet": "apps/v1",
    "StorageClass": "storage.k8s.io/v1",
    "WorkloadSpread": "apps.kruise.io/v1beta1",
}


def manifest(
    kind: str,
    name: str,
    *,
    version: str = "",
    namespace: str | None = None,
    metadata: Mapping[str, Any] = NO_LABELS,
    **fields: Any,
) -> Document:
    """Build an object of any kind, in the namespace default if its kind has namespaces."""
    if namespace is None:
        namespace = "" if kind in _CLUSTER_SCOPED else "default"
    return {
        "apiVersion": version or _API_VERSIONS.get(kind, "v1"),
        "kind": kind,
        "metadata": without_none(name=name, namespace=namespace or None) | dict(metadata),
        **fields,
    }


def container_json(
    name: str = "main", requests: Mapping[str, str] = NO_LABELS, **fields: Any
) -> Document:
    """Build a container."""
    return {"name": name, "image": "pause", "resources": {"requests": dict(requests)}, **fields}


def pod_json(
    name: str = "pod",
    *,
    on: str | None = None,
    cpu: str | None = None,
    memory: str | None = None,
    priority: int | None = None,
    labels: Mapping[str, str] | None = None,
    namespace: str = "default",
    uid: str | None = None,
    phase: str | None = None,
    started: int | None = None,
    containers: list[Document] | None = None,
    metadata: Document | None = None,
    spec: Document | None = None,
    status: Document | None = None,
) -> Document:
    """Build a v1 Pod with one container, running on node ``on`` or pending."""
    asked = without_none(cpu=cpu, memory=memory)
    meta = without_none(uid=uid or name, labels=labels)
    own = {"containers": containers or [container_json(requests=asked)]}
    state = {"phase": phase or ("Running" if on else "Pending")}
    return manifest(
        "Pod",
        name,
        namespace=namespace,
        metadata=meta | (metadata or {}),
        spec=own | without_none(nodeName=on, priority=priority) | (spec or {}),
        status=state | without_none(startTime=rfc3339(started)) | (status or {}),
    )


def pod_spec(**fields: Any) -> Document:
    """Build the spec of a pod with one container, as clients write it."""
    return {"containers": [{"name": "c", "image": "i"}], **fields}


def pod_request(
    name: str = "p", *, labels: Mapping[str, str] | None = None, **spec: Any
) -> Document:
    """Build a pod as clients create it: with one container, without a UID and a status."""
    metadata = without_none(labels=labels)
    return manifest("Pod", name, namespace="", metadata=metadata, spec=pod_spec(**spec))


def controller_spec(labels: Mapping[str, str], **fields: Any) -> Document:
    """Build the spec of a ReplicaSet or Deployment whose pods have these labels."""
    template = {"metadata": {"labels": labels}, "spec": pod_spec()}
    return {"selector": {"matchLabels": labels}, "template": template, **fields}


def node_json(
    name: str = "node-1",
    *,
    cpu: str = "100",
    memory: str = "1Ti",
    pods: str = "110",
    others: Mapping[str, str] = NO_LABELS,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    unschedulable: bool | None = None,
    uid: str | None = None,
) -> Document:
    """Build a v1 Node; ``taints`` are written ``key=value:Effect``."""
    room = {"cpu": cpu, "memory": memory, "pods": pods, **others}
    marks = [without_none(key=t.key, value=t.value, effect=t.effect) for t in map(taint, taints)]
    return manifest(
        "Node",
        name,
        metadata=without_none(uid=uid or f"node-{name}", labels=labels),
        spec=without_none(taints=marks or None, unschedulable=unschedulable),
        status={"capacity": room, "allocatable": room},
    )


def pdb_json(
    name: str = "budget",
    *,
    match: Mapping[str, str] | None = None,
    allowed: int = 0,
    namespace: str = "default",
    disrupted: Iterable[str] = (),
) -> Document:
    """Build a policy/v1 PodDisruptionBudget for pods labelled ``match`` (None: no selector)."""
    charged = dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")
    selector = None if match is None else {"matchLabels": dict(match)}
    return manifest(
        "PodDisruptionBudget",
        name,
        namespace=namespace,
        metadata={"uid": f"pdb-{name}"},
        spec=without_none(selector=selector),
        status={"disruptionsAllowed": allowed} | without_none(disruptedPods=charged or None),
    )


def event_json(name: str = "e", **fields: Any) -> Document:
    """Build an event of events.k8s.io about the pod ``p``."""
    own: Document = {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-vm",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "note": "assigned",
        "type": "Normal",
    }
    return manifest("Event", name, version="events.k8s.io/v1", **own, **fields)


def thing(
    name: str,
    *owners: Document,
    kind: str = "ConfigMap",
    version: str = "v1",
    namespace: str = "default",
    finalizers: Iterable[str] = (),
    **fields: Any,
) -> Document:
    """Build an object that does nothing but belong to others; its UID is its name."""
    meta = without_none(
        uid=name, ownerReferences=list(owners) or None, finalizers=list(finalizers) or None
    )
    return manifest(kind, name, version=version, namespace=namespace, metadata=meta, **fields)


def owner(name: str, kind: str = "ConfigMap", version: str = "v1", **fields: Any) -> Document:
    """Build a reference to an owner, whose UID is its name."""
    return {"apiVersion": version, "kind": kind, "name": name, "uid": name, **fields}


def blocking(name: str) -> Document:
    """Build a reference that the owner's deletion in the foreground waits for."""
    return owner(name, blockOwnerDeletion=True)


def running_pod(
    name: str,
    node: str,
    *,
    namespace: str = "default",
    metadata: Mapping[str, Any] = NO_LABELS,
    status: Mapping[str, Any] = NO_LABELS,
    **spec: Any,
) -> Document:
    """Build a pod that runs on a node and is ready."""
    merged = {"conditions": [{"type": "Ready", "status": "True"}], **status}
    return pod_json(
        name, on=node, namespace=namespace, metadata=dict(metadata), spec=spec, status=merged
    )


def encoded(document: object) -> bytes:
    """Return a document's JSON."""
    return msgspec.json.encode(document)


def rfc3339(seconds: int | None) -> str | None:
    """Write seconds after the epoch as Kubernetes writes times."""
    return None if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def without_none(**fields: object) -> Document:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def workload_json(
    kind: str,
    name: str,
    replicas: int = 1,
    *,
    namespace: str = "default",
    labels: Mapping[str, str] = NO_LABELS,
    pod: Mapping[str, Any] = NO_LABELS,
    metadata: Mapping[str, Any] = NO_LABELS,
    **spec: Any,
) -> Document:
    """Build a ReplicaSet, Deployment or the like that selects pods labelled ``app: NAME``.

    ``pod`` is the spec of its pods, ``labels`` are added to theirs, ``spec`` adds to its own.
    """
    selected = {"app": name}
    template = {
        "metadata": {"labels": selected | dict(labels)},
        "spec": dict(pod) or {"containers": [{"name": "main", "image": "pause"}]},
    }
    own = {"replicas": replicas, "selector": {"matchLabels": selected}, "template": template}
    return manifest(kind, name, namespace=namespace, metadata=metadata, spec=own | spec)
