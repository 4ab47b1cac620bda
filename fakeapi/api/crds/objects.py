"""The strategy of custom resources: validation, preparation for updates, and warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakeapi.api.crds.compiled import compiled_schema
from fakeapi.api.errors import Cause, invalid
from fakeapi.api.metadatarules import check_custom_metadata
from fakeapi.api.samejson import json_equal
from fakeapi.kinds import ResourceInfo
from fakeapi.kinds.custom import CustomResourceInfo
from fakeapi.store import Document
from policies.naming import invalid_label_key

OldObject = Mapping[str, Any]
_STANDARD = frozenset(("orphan", "foregroundDeletion", "kubernetes"))


def validate_custom_resource(
    kind: ResourceInfo,
    custom: CustomResourceInfo,
    document: Document,
    old: OldObject | None = None,
    subresource: str = "",
) -> None:
    """Raise StatusError (422) with all errors of an object that is about to be stored."""
    schema = compiled_schema(custom)
    typed = {"apiVersion": kind.api_version, "kind": kind.kind, **document}
    causes: list[Cause] = list(check_custom_metadata(document["metadata"], "metadata"))
    if subresource == "status" and old is not None:
        causes += schema.status_causes(typed, old)
    else:
        causes += schema.causes(typed, old)
    if causes:
        raise invalid(kind.qualified_kind, document["metadata"].get("name", ""), causes)


def prepare_custom_update(kind: ResourceInfo, document: Document, old: OldObject) -> None:
    """Keep the old status if it is a subresource; increment the generation on other changes.

    Changes of metadata do not increment the generation.
    """
    if "status" in kind.subresources:
        document.pop("status", None)
        if "status" in old:
            document["status"] = old["status"]
    before, now = _content(old), _content(document)
    if not json_equal(now, before):
        metadata = document["metadata"]
        metadata["generation"] = metadata.get("generation", 0) + 1


def _content(document: OldObject) -> dict[str, Any]:
    others = ("metadata", "kind", "apiVersion")
    return {name: value for name, value in document.items() if name not in others}


def prepare_custom_status(document: Document, old: OldObject) -> None:
    """Copy everything except the status and the managed fields from ``old``."""
    status, managed = document.get("status"), document["metadata"].get("managedFields")
    version = document["metadata"].get("resourceVersion")
    document.clear()
    document.update(old)
    document["metadata"] = dict(old["metadata"])
    document.pop("status", None)
    if managed is not None:
        document["metadata"]["managedFields"] = managed
    if version is not None:
        document["metadata"]["resourceVersion"] = version
    if status is not None:
        document["status"] = status


def finalizer_warnings(document: OldObject, old: OldObject | None) -> tuple[str, ...]:
    """Return warnings of new finalizers whose names are not domain-qualified."""
    before = (old or {}).get("metadata", {}).get("finalizers") or ()
    added = set(document["metadata"].get("finalizers") or ()) - set(before)
    return tuple(words for name in sorted(added) if (words := _finalizer_warning(name)) is not None)


def _finalizer_warning(name: str) -> str | None:
    if "/" in name or name in _STANDARD or invalid_label_key(name):
        return None
    path = " including a path (/)" if "." in name else ""
    why = "to avoid accidental conflicts with other finalizer writers"
    return f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name{path} {why}'
