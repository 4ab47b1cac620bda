"""Built-in admission plugins: checks and changes between a valid request and the stored object.

Always enabled, for objects and, where they change what is checked, for their subresources:

- A create in a namespace that does not exist, or that is being terminated, is rejected.
- A pod or pod group gets its priority from its PriorityClass, or from the global default class.
- A pod and a claim keep to the LimitRanges of their namespace, and get their defaults.
- A claim without a storage class gets the default one.
- A pod gets the overhead and the placement of its RuntimeClass, which must exist.
- A write that counts must fit the ResourceQuotas of its namespace, and is charged to them.
- A pod that is created with a node name, or bound, gets the zone and region labels of its node.
- A create of a custom resource is rejected while its definition is being deleted.
- Only one PriorityClass may be the global default, and ``system-`` names are reserved.

Enabled together with a controller, as test servers without controllers would reject every pod and
never remove the taint:

    plugin                with the component   on create
    ServiceAccount        serviceaccounts      a pod gets a service account, which must exist,
                                               and the volume with its token (never mounted)
    TaintNodesByCondition nodelifecycle        a node gets the taint node.kubernetes.io/not-ready

Upstream, a pod that is created before the controller has created the ``default`` account of a new
namespace waits a second or two. Here the plugin creates the account immediately.

Sources: kubernetes/plugin/pkg/admission/{serviceaccount,nodetaint,podtopologylabels,priority},
v1.37; k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle; pkg/apis/scheduling/validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fakeapi.apiserver.admission.default_storage_class import set_default_storage_class
from fakeapi.apiserver.admission.priority import (
    admit_pod,
    admit_pod_group,
    admit_priority_class,
    check_priority_class,
    check_priority_class_update,
    keep_pod_priority,
)
from fakeapi.apiserver.admission.runtime_class import set_runtime_class_fields
from fakeapi.apiserver.admission.service_account import (
    admit_service_account,
    check_ephemeral_containers,
)
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import (
    LIMIT_RANGES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESOURCE_QUOTAS,
)
from fakeapi.apiserver.objects.metadata import IdAndTimeSources
from fakeapi.apiserver.store.dry_run import ObjectReader
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import Cause, forbidden, not_found

if TYPE_CHECKING:
    from fakeapi.apiserver.admission.resource_quota import QuotaCharge

AdmissionPlugin = Callable[[ObjectReader, ResourceInfo, str, Document, IdAndTimeSources], None]

_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def taint_new_node(
    _objects: ObjectReader,
    kind: ResourceInfo,
    _namespace: str,
    document: Document,
    _sources: IdAndTimeSources,
) -> None:
    """Taint a new node as not ready, until its kubelet reports that it is ready."""
    if kind is not NODES:
        return
    spec = document.setdefault("spec", {})
    taints = spec.get("taints") or []
    marks = [(each.get("key"), each.get("effect")) for each in taints]
    if (_NOT_READY["key"], _NOT_READY["effect"]) not in marks:
        spec["taints"] = [*taints, dict(_NOT_READY)]


COMPONENT_PLUGINS: Final[Mapping[str, AdmissionPlugin]] = {
    "serviceaccounts": admit_service_account,
    "nodelifecycle": taint_new_node,
}
"""The admission plugin of each component that has one."""


_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def topology_labels(objects: ObjectReader, node: str) -> dict[str, str]:
    """Return the labels that pods take over from a node."""
    entry = objects.get(NODES, node) if node else None
    if entry is None:
        return {}
    return {label: entry.labels[label] for label in _LABELS if label in entry.labels}


def set_topology_labels(objects: ObjectReader, _kind: ResourceInfo, pod: Document) -> None:
    """Set the topology labels of a new pod from the node that it names, if any."""
    if found := topology_labels(objects, (pod.get("spec") or {}).get("nodeName") or ""):
        labels = pod["metadata"].get("labels") or {}
        pod["metadata"]["labels"] = {**labels, **found}


def complete_containers(objects: ObjectReader, _kind: ResourceInfo, pod: Document) -> None:
    """Set the requests and limits of a pod's containers that LimitRanges have defaults for."""
    if ranges := objects.entries(LIMIT_RANGES, pod["metadata"]["namespace"]):
        from fakeapi.apiserver.admission.limit_range import set_container_defaults

        set_container_defaults(ranges, pod)


AdmitCreate = Callable[[ObjectReader, ResourceInfo, Document], None]
AdmitUpdate = Callable[[ObjectReader, ResourceInfo, Document, Mapping[str, Any]], None]

_ON_CREATE: Final[Mapping[str, tuple[AdmitCreate, ...]]] = {
    "compositepodgroups.scheduling.k8s.io": (admit_pod_group,),
    "podgroups.scheduling.k8s.io": (admit_pod_group,),
    "persistentvolumeclaims": (set_default_storage_class,),
    "pods": (complete_containers, admit_pod, set_topology_labels, set_runtime_class_fields),
    "priorityclasses.scheduling.k8s.io": (check_priority_class, admit_priority_class),
}
_ON_UPDATE: Final[Mapping[str, tuple[AdmitUpdate, ...]]] = {
    "pods": (keep_pod_priority,),
    "priorityclasses.scheduling.k8s.io": (check_priority_class_update,),
}


def admit_create(
    objects: ObjectReader, kind: ResourceInfo, namespace: str, document: Document
) -> None:
    """Complete or reject an object to be created; raise StatusError (403, 404, 422)."""
    if kind.namespaced:
        _admit_namespace(objects, kind, namespace, document)
    if kind.custom is not None and kind.custom.terminating:
        named = document["metadata"].get("name", "")
        detail = "create not allowed while custom resource definition is terminating"
        raise forbidden(kind, named, detail)
    for admit in _ON_CREATE.get(kind.resource, ()):
        admit(objects, kind, document)


def admit_update(
    objects: ObjectReader,
    kind: ResourceInfo,
    subresource: str,
    document: Document,
    old: Mapping[str, Any],
    plugins: Sequence[AdmissionPlugin],
) -> None:
    """Complete or reject an object that replaces ``old``; raise StatusError (403, 422).

    ``plugins`` are those enabled together with a controller.
    """
    if subresource == "resize":
        complete_containers(objects, kind, document)
    elif subresource == "ephemeralcontainers" and admit_service_account in plugins:
        check_ephemeral_containers(objects, document)
    elif not subresource:
        for admit in _ON_UPDATE.get(kind.resource, ()):
            admit(objects, kind, document, old)


def check_limits(
    objects: ObjectReader,
    kind: ResourceInfo,
    subresource: str,
    document: Document,
    old: Mapping[str, Any] | None,
) -> None:
    """Raise StatusError (403) if a valid pod or claim breaks a LimitRange of its namespace."""
    if kind is not PODS and kind is not PERSISTENT_VOLUME_CLAIMS:
        return
    if old is not None and subresource != _LIMITED_UPDATES[kind.resource]:
        return
    ranges = objects.entries(LIMIT_RANGES, document["metadata"]["namespace"])
    if ranges and (old is None or "deletionTimestamp" not in old["metadata"]):
        from fakeapi.apiserver.admission.limit_range import check_limit_ranges

        check_limit_ranges(ranges, kind, document)


_LIMITED_UPDATES: Final = {"persistentvolumeclaims": "", "pods": "resize"}
"""The subresource whose updates are limited; creates are, too."""


def quota_charges(
    objects: ObjectReader,
    kind: ResourceInfo,
    subresource: str,
    document: Document,
    old: Mapping[str, Any] | None,
    sources: IdAndTimeSources,
) -> Sequence[QuotaCharge]:
    """Return what a valid write charges to the ResourceQuotas of its namespace.

    Raise StatusError (403) if the write exceeds a quota.
    """
    if not kind.namespaced:
        return ()
    quotas = objects.entries(RESOURCE_QUOTAS, document["metadata"]["namespace"])
    if not quotas:
        return ()
    from fakeapi.apiserver.admission.resource_quota import charges_of  # imported on first use

    return charges_of(quotas, kind, subresource, document, old, sources.now())


def _admit_namespace(
    objects: ObjectReader, kind: ResourceInfo, name: str, document: Document
) -> None:
    namespace = objects.get(NAMESPACES, name)
    if namespace is None:
        raise not_found(NAMESPACES, name)
    if b'"deletionTimestamp"' not in namespace.raw:  # avoids decoding the namespace for each create
        return
    if "deletionTimestamp" in namespace.document()["metadata"]:
        detail = f"unable to create new content in namespace {name} because it is being terminated"
        message = f"namespace {name} is being terminated"
        cause = Cause("NamespaceTerminating", message, "metadata.namespace")
        metadata = document["metadata"]
        named = metadata.get("name") or metadata.get("generateName", "")
        raise forbidden(kind, named, detail, [cause])
