"""Built-in admission: checks and changes between a valid request and the stored object.

- A create in a namespace that does not exist, or that is being terminated, is rejected.
- A pod gets its priority from its PriorityClass, or from the global default class.
- A pod that names its node gets the zone and region of the node as labels.
- A create of a custom resource is rejected while its definition is being deleted.
- Only one PriorityClass may be the global default, and ``system-`` names are reserved.

Subresources are not admitted here. Sources:
k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle; kubernetes/plugin/pkg/admission/priority,
pkg/apis/scheduling/validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fakeapi.api.errors import Cause, forbidden, not_found
from fakeapi.api.priority import (
    admit_pod,
    admit_priority_class,
    check_priority_class,
    check_priority_class_update,
    keep_pod_priority,
)
from fakeapi.api.rehearsing import ObjectReader
from fakeapi.api.topology import set_topology_labels
from fakeapi.kinds import ResourceInfo
from fakeapi.kinds.builtin import NAMESPACES
from fakeapi.store import Document

AdmitCreate = Callable[[ObjectReader, ResourceInfo, Document], None]
AdmitUpdate = Callable[[ObjectReader, ResourceInfo, Document, Mapping[str, Any]], None]

_ON_CREATE: Final[Mapping[str, tuple[AdmitCreate, ...]]] = {
    "pods": (admit_pod, set_topology_labels),
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
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(kind, named, why)
    for admit in _ON_CREATE.get(kind.resource, ()):
        admit(objects, kind, document)


def admit_update(
    objects: ObjectReader, kind: ResourceInfo, document: Document, old: Mapping[str, Any]
) -> None:
    """Complete or reject an object that replaces ``old``; raise StatusError (403, 422)."""
    for admit in _ON_UPDATE.get(kind.resource, ()):
        admit(objects, kind, document, old)


def _admit_namespace(
    objects: ObjectReader, kind: ResourceInfo, name: str, document: Document
) -> None:
    namespace = objects.get(NAMESPACES, name)
    if namespace is None:
        raise not_found(NAMESPACES, name)
    if b'"deletionTimestamp"' not in namespace.raw:  # avoids decoding the namespace for each create
        return
    if "deletionTimestamp" in namespace.document()["metadata"]:
        why = f"unable to create new content in namespace {name} because it is being terminated"
        message = f"namespace {name} is being terminated"
        cause = Cause("NamespaceTerminating", message, "metadata.namespace")
        metadata = document["metadata"]
        named = metadata.get("name") or metadata.get("generateName", "")
        raise forbidden(kind, named, why, [cause])
