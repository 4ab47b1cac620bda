"""Create and update strategies: fields that the server sets or keeps.

    write             from the client              from the server, or kept as before
    create            metadata, spec               uid, creationTimestamp, generation 1, status
    update            metadata, spec               identity, deletion, status
    update of status  metadata but owners, status  identity, deletion, owners, spec
                      (of a custom resource: the status only)

``metadata.generation`` counts changes of the spec, for kinds that have it. For a kind whose
``first_status`` is None (nodes), create keeps the client's status.

Source: k8s.io/apiserver/pkg/registry/rest (create.go, update.go) and the strategies of the kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakeapi.api.crds.objects import prepare_custom_status, prepare_custom_update
from fakeapi.api.metadata import IdAndTimeSources
from fakeapi.api.samejson import json_equal
from fakeapi.kinds import ResourceInfo
from fakeapi.store import Document

_IDENTITY = (
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def prepare_create(kind: ResourceInfo, document: Document, sources: IdAndTimeSources) -> None:
    """Set the fields that the server sets on create; ``document`` has its name and namespace."""
    metadata = document["metadata"]
    for name in ("selfLink", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(name, None)
    metadata["uid"] = sources.uid()
    metadata["creationTimestamp"] = sources.timestamp(0)
    set_name_label(kind, metadata)
    if kind.generations:
        metadata["generation"] = 1
    if kind.first_spec_finalizers:
        spec = document.setdefault("spec", {})
        present = spec.get("finalizers") or []
        spec["finalizers"] = list(dict.fromkeys((*present, *kind.first_spec_finalizers)))
    if "status" in kind.subresources and kind.custom is not None:
        document.pop("status", None)
    elif "status" in kind.subresources and kind.first_status is not None:
        document["status"] = dict(kind.first_status)


def prepare_update(kind: ResourceInfo, document: Document, old: Mapping[str, Any]) -> None:
    """Keep the fields of ``old`` that an update may not change, and update the generation."""
    _keep_identity(document["metadata"], old["metadata"])
    set_name_label(kind, document["metadata"])
    if kind.custom is not None:
        prepare_custom_update(kind, document, old)
        return
    if "status" in kind.subresources:
        _keep_field(document, old, "status")
    if kind.first_spec_finalizers:
        _keep_field(document.setdefault("spec", {}), old.get("spec") or {}, "finalizers")
    if kind.generations and not json_equal(document.get("spec"), old.get("spec")):
        metadata = document["metadata"]
        metadata["generation"] = metadata.get("generation", 0) + 1


def prepare_status_update(kind: ResourceInfo, document: Document, old: Mapping[str, Any]) -> None:
    """Keep the fields of ``old`` except the status and the metadata that may change."""
    if kind.custom is not None:
        prepare_custom_status(document, old)
        return
    metadata = document["metadata"]
    _keep_identity(metadata, old["metadata"])
    _keep_field(metadata, old["metadata"], "ownerReferences")
    status = document.get("status")
    document.clear()
    document.update(old)
    document["metadata"] = metadata
    document.pop("status", None)
    if status is not None:
        document["status"] = status


def set_name_label(kind: ResourceInfo, metadata: dict[str, Any]) -> None:
    """Set the name label of an object, if it has a name and its kind has such a label."""
    if kind.name_label and metadata.get("name"):
        metadata.setdefault("labels", {})[kind.name_label] = metadata["name"]


def _keep_identity(metadata: dict[str, Any], old: Mapping[str, Any]) -> None:
    for name in _IDENTITY:
        _keep_field(metadata, old, name)


def _keep_field(target: dict[str, Any], source: Mapping[str, Any], name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)
