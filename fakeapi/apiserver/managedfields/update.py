"""The owners of fields after a create, an update or a patch.

A manager that changes or adds a field takes it from all other owners; a removed field has no owner.
The change is attributed to the manager with the operation Update. An object whose entries were
cleared, or which was stored without any, is tracked again from the next apply on.

*Reset fields* are those that a write cannot change, and whose ownership it does not take: the
status for a write to the object itself, the spec for a write to the status.

Sources: k8s.io/apimachinery/pkg/util/managedfields/internal (fieldmanager.go, capmanagers.go,
managedfieldsupdater.go, skipnonapplied.go, stripmeta.go), structured-merge-diff/merge/update.go,
``GetResetFields`` in pkg/registry/GROUP/RESOURCE/strategy.go, v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.structural_types import schema_of
from fakeapi.apiserver.managedfields.compare import FieldSetComparison, compare
from fakeapi.apiserver.managedfields.entries import (
    UPDATE,
    OwnedFields,
    Owner,
    Owners,
    read_client_entries,
    read_entries,
    write_entries,
)
from fakeapi.apiserver.managedfields.field_set import (
    ANY,
    EMPTY,
    FieldPattern,
    FieldSet,
    Path,
    difference,
    intersection,
    matching,
    recursive_difference,
    set_of,
    union,
)

_METADATA: Final[Path] = ("f:metadata",)
_SPEC: Final[Path] = ("f:spec",)
_STATUS: Final[Path] = ("f:status",)

_OF_STATUS: Final[Mapping[str, tuple[Path, ...]]] = {
    "deployments": (_SPEC, ("f:metadata", "f:labels")),
    "pods": (_SPEC, ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")),
    "certificatesigningrequests": (_SPEC, ("f:status", "f:conditions")),
    "podcertificaterequests": (_METADATA, _SPEC),
    "flowschemas": (_METADATA, _SPEC),
    "prioritylevelconfigurations": (_METADATA, _SPEC),
    "validatingadmissionpolicies": (_METADATA, _SPEC),
    "servicecidrs": (_METADATA, _SPEC),
    "volumeattachments": (_METADATA, _SPEC),
    "csinodes": (_METADATA, _SPEC),
    "devicetaintrules": (_METADATA, _SPEC),
    "resourceclaims": (_METADATA, _SPEC),
    "storageversionmigrations": (_METADATA, _SPEC),
}
"""The fields that a write to the status resets, for resources where it is not only the spec."""

_OTHERS: Final[Mapping[tuple[str, str], tuple[Path, ...]]] = {
    ("certificatesigningrequests", ""): (_SPEC, _STATUS),
    ("certificatesigningrequests", "approval"): (_SPEC, ("f:status", "f:certificate")),
    ("customresourcedefinitions", ""): (_STATUS,),
    ("namespaces", "finalize"): (_STATUS,),
}


_CONTAINER_RESOURCES: Final[FieldPattern] = {ANY: {"f:resources": {}, "f:resizePolicy": {}}}
_ONLY: Final[Mapping[tuple[str, str], FieldPattern]] = {
    ("pods", "ephemeralcontainers"): {"f:spec": {"f:ephemeralContainers": {}}},
    ("pods", "resize"): {
        "f:spec": {
            "f:containers": _CONTAINER_RESOURCES,
            "f:initContainers": _CONTAINER_RESOURCES,
        }
    },
}
"""The fields that a write to a subresource does not reset, where they are fewer."""


def writable_fields(kind: ResourceInfo, subresource: str, fields: FieldSet) -> FieldSet:
    """Return those of the fields that a write to the object, or to its subresource, can change."""
    only = _ONLY.get((kind.plural, subresource))
    if only is not None and kind.custom is None:
        return matching(fields, only)
    return recursive_difference(fields, reset_fields(kind, subresource))


@lru_cache(maxsize=512)
def reset_fields(kind: ResourceInfo, subresource: str) -> FieldSet:
    """Return the fields that a write to the object, or to its subresource, resets."""
    found = _OTHERS.get((kind.plural, subresource))
    if found is not None:
        return set_of(*found)
    if kind.custom is not None and subresource == "status":
        return set_of(_METADATA, _SPEC)
    if subresource == "status":
        return set_of(*_OF_STATUS.get(kind.plural, (_SPEC,)))
    return set_of(_STATUS) if not subresource and "status" in kind.subresources else EMPTY


MAX_UPDATERS: Final = 10
ANCIENT: Final = "ancient-changes"
UNKNOWN: Final = "unknown"

_STRIPPED: Final = set_of(
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    *(
        ("f:metadata", f"f:{name}")
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ),
)


@dataclass(frozen=True, slots=True)
class FieldManager:
    """The field manager of a write: its name, the time (RFC 3339), and the subresource or ""."""

    manager: str
    time: str
    subresource: str = ""


def track_create(kind: ResourceInfo, document: dict[str, Any], field_manager: FieldManager) -> None:
    """Set the managed fields of a new document: the manager of the write owns all fields."""
    entries = document["metadata"].pop("managedFields", None)
    if _is_reset(entries):
        entries = None
    owners = update_owners(kind, _sent_or(entries, {}), {}, document, field_manager)
    _set_entries(document, owners, {})


def track_update(
    kind: ResourceInfo,
    old: Mapping[str, Any],
    document: dict[str, Any],
    field_manager: FieldManager,
) -> None:
    """Set the managed fields of a changed document."""
    stored = old["metadata"].get("managedFields") or ()
    sent = document["metadata"].pop("managedFields", None)
    live = stored_owners(stored)
    if field_manager.subresource or sent is None or sent == stored:
        before = live
    else:
        before = {} if _is_reset(sent) else _sent_or(sent, live)
    if not before:
        return
    owners = update_owners(kind, before, old, document, field_manager)
    _set_entries(document, owners, live)


def update_owners(
    kind: ResourceInfo,
    before: Owners,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    field_manager: FieldManager,
) -> dict[Owner, OwnedFields]:
    """Return the owners after a change from ``old`` to ``new``, both without managed fields."""
    comparison = compare_versions(kind, old, new, field_manager.subresource)
    owners = take_from_others(before, kind.api_version, comparison, None)
    taken = strip(comparison.changed)
    if taken:
        owner = Owner(
            field_manager.manager or UNKNOWN, UPDATE, kind.api_version, field_manager.subresource
        )
        fields = owners[owner].fields if owner in owners else {}
        owners[owner] = OwnedFields(union(taken, fields), kind.api_version, field_manager.time)
    return _cap_updaters(owners)


def compare_versions(
    kind: ResourceInfo, old: Mapping[str, Any], new: Mapping[str, Any], subresource: str
) -> FieldSetComparison:
    """Return the comparison of two states, without the fields that the subresource resets."""
    changes = compare(schema_of(kind), _comparable(old), _comparable(new))
    return changes.filtered(lambda fields: writable_fields(kind, subresource, fields))


def take_from_others(
    owners: Owners, version: str, comparison: FieldSetComparison, taker: Owner | None
) -> dict[Owner, OwnedFields]:
    """Return the owners; those other than ``taker`` lose removed and changed fields.

    Owners without any fields left are removed. Owners of another version are not changed.
    """
    changed = union(comparison.removed, comparison.changed)
    if not changed:
        return dict(owners)
    left = {
        owner: owned
        if owner == taker or owned.version != version
        else replace(owned, fields=_left(owned.fields, changed))
        for owner, owned in owners.items()
    }
    return {owner: owned for owner, owned in left.items() if owned.fields}


def ignore_managed_fields_timestamps(
    document: dict[str, Any], old: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the document with the old entries, if the entries differ only in their times.

    A write of the values that are already stored is not a change.
    """
    entries = document["metadata"].get("managedFields") or []
    before = old["metadata"].get("managedFields") or []
    if entries == before or len(entries) != len(before):
        return document
    if any(
        {**one, "time": ""} != {**two, "time": ""} for one, two in zip(entries, before, strict=True)
    ):
        return document
    return {**document, "metadata": {**document["metadata"], "managedFields": before}}


def strip(fields: FieldSet) -> FieldSet:
    """Return the fields without the metadata fields that the server manages."""
    return difference(fields, _STRIPPED)


def stored_owners(entries: Any) -> dict[Owner, OwnedFields]:
    """Return the owners of a stored object's entries; none if the entries are invalid."""
    try:
        return read_entries(entries)
    except ValueError:
        return {}


def _left(fields: FieldSet, changed: FieldSet) -> FieldSet:
    return difference(fields, changed) if intersection(fields, changed) else fields


def _sent_or(entries: Any, otherwise: dict[Owner, OwnedFields]) -> dict[Owner, OwnedFields]:
    try:
        return read_client_entries(entries or ()) or otherwise
    except ValueError:
        return otherwise


def _is_reset(entries: Any) -> bool:
    """Return whether a client clears all owners: with an empty list, or with one empty entry."""
    return entries is not None and (not entries or entries == [{}])


def _comparable(document: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = document.get("metadata") or {}
    if "managedFields" not in metadata:
        return document
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    return {**document, "metadata": kept}


def _set_entries(document: dict[str, Any], owners: Owners, previous: Owners) -> None:
    if owners:
        document["metadata"]["managedFields"] = write_entries(owners, previous)


def _cap_updaters(owners: dict[Owner, OwnedFields]) -> dict[Owner, OwnedFields]:
    """Return the owners with the oldest updaters merged, by version, until at most ten are left."""
    updaters = [owner for owner in owners if owner.operation == UPDATE]
    excess = len(updaters) - MAX_UPDATERS
    first: dict[str, Owner] = {}
    for owner in sorted(updaters, key=lambda owner: (owners[owner].time, owner)):
        if excess <= 0:
            break
        version = owners[owner].version
        if version not in first:
            first[version] = owner
            continue
        bucket = Owner(ANCIENT, UPDATE, version)
        if bucket not in owners:
            owners[bucket] = owners.pop(first[version])
        moved = owners.pop(owner)
        fields = union(moved.fields, owners[bucket].fields)
        owners[bucket] = OwnedFields(fields, version, moved.time)
        excess -= 1
    return owners
