"""Server-side apply: a configuration is merged into an object, and its manager owns its fields.

1. The configuration is validated against the kind's structural type, and merged into the live
   object.
2. Fields that the manager applied before and no longer applies are removed, unless others own them.
3. A change of a field that others own is a conflict; with force, the manager takes ownership.

``kubectl`` is special: fields that it has applied on the client side, as the last-applied
annotation records, are no conflict, and the annotation is updated to the applied configuration.

Sources: structured-merge-diff/merge/update.go (Apply), typed/validate.go; k8s.io/apimachinery/pkg/
util/managedfields/internal (conflict.go, lastappliedmanager.go, lastappliedupdater.go,
skipnonapplied.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.structural_types import (
    ListType,
    Scalar,
    Struct,
    Type,
    Untyped,
    schema_of,
)
from fakeapi.apiserver.managedfields.compare import compare
from fakeapi.apiserver.managedfields.entries import APPLY, OwnedFields, Owner, Owners, write_entries
from fakeapi.apiserver.managedfields.field_set import (
    EMPTY,
    FieldSet,
    Path,
    contains,
    describe,
    difference,
    field_element,
    intersection,
    item_element,
    paths,
    union,
)
from fakeapi.apiserver.managedfields.merge import merge, prune, without_nulls
from fakeapi.apiserver.managedfields.typed_value import field_type, to_field_set
from fakeapi.apiserver.managedfields.update import (
    FieldManager,
    compare_versions,
    stored_owners,
    strip,
    take_from_others,
    update_owners,
    writable_fields,
)
from fakeapi.apiserver.wire.errors import Cause, StatusError, bad_request

_NUMERIC: Final = ("integer", "number")


def validation_errors(shape: Type, config: Mapping[str, Any]) -> list[str]:
    """Return the messages of all errors of a configuration, each with its path."""
    return [f"{path}: {detail}" if path else detail for path, detail in _validate(shape, config)]


def list_errors(shape: Type, config: Mapping[str, Any]) -> str:
    """Return all errors of a configuration as one text; "" if there are none."""
    found = validation_errors(shape, config)
    return found[0] if len(found) == 1 else "\n  ".join(("errors:", *found)) if found else ""


PathErrors = Iterator[tuple[str, str]]


def _validate(shape: Type, value: Any) -> PathErrors:
    if value is None or isinstance(shape, Untyped):
        return
    if isinstance(shape, Scalar):
        yield from _scalar(shape, value)
    elif isinstance(shape, ListType):
        yield from _list(shape, value)
    elif not isinstance(value, dict):
        yield "", f"expected map, got &{{{_format_value(value)}}}"
    else:
        for name, part in value.items():
            element = describe((field_element(name),))
            if isinstance(shape, Struct) and not (shape.open or name in shape.fields):
                yield element, "field not declared in schema"
                return
            yield from _under(element, _validate(field_type(shape, name), part))


def _list(shape: ListType, values: Any) -> PathErrors:
    if not isinstance(values, list):
        yield "", f"expected list, got &{{{_format_value(values)}}}"
        return
    seen: set[str] = set()
    for index, value in enumerate(values):
        element = f"i:{index}"
        if shape.kind != "atomic":
            try:
                element = item_element(shape, value)
            except ValueError as error:
                yield "", f"element {index}: {error}"
                return
            if element in seen:
                yield "", f"duplicate entries for key {describe((element,))}"
            seen.add(element)
        yield from _under(describe((element,)), _validate(shape.element, value))


def _under(element: str, found: PathErrors) -> PathErrors:
    for path, detail in found:
        yield element + path, detail


def _scalar(shape: Scalar, value: Any) -> PathErrors:
    if isinstance(value, dict | list):
        yield "", f"expected {_GO.get(shape.type, shape.type)}, got &{{{_format_value(value)}}}"
    elif shape.type == "string" and not isinstance(value, str):
        yield "", f"expected string, got &value.valueUnstructured{{Value:{_format_value(value)}}}"
    elif shape.type in _NUMERIC and (isinstance(value, str | bool)):
        yield "", f"expected numeric (int or float), got {_GO_TYPES[type(value)]}"
    elif shape.type == "boolean" and not isinstance(value, bool):
        yield "", f"expected boolean, got &{{{_format_value(value)}}}"


_GO: Final = {"integer": "numeric (int or float)", "number": "numeric (int or float)"}
_GO_TYPES: Final[Mapping[type, str]] = {str: "string", bool: "bool"}


def _format_value(value: Any) -> str:
    """Return a value as Go's ``%v`` prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{k}:{_format_value(v)}' for k, v in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_format_value, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


KUBECTL: Final = "kubectl"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
BEFORE_APPLY: Final = "before-first-apply"


@dataclass(frozen=True, slots=True)
class AppliedConfiguration:
    """An applied configuration; ``force`` resolves conflicts by taking ownership."""

    document: Mapping[str, Any]
    force: bool = False


def apply(
    kind: ResourceInfo,
    live: Mapping[str, Any],
    config: AppliedConfiguration,
    field_manager: FieldManager,
) -> dict[str, Any]:
    """Return the object after an apply; ``live`` is {} if there was none, and is not changed.

    Raise StatusError: 400 for another kind of object, 409 for conflicts, 500 (as upstream) if the
    configuration does not match the kind's type.
    """
    check_configuration(kind, config.document)
    owners = stored_owners((live.get("metadata") or {}).get("managedFields") or ())
    bare = _without_entries(live)
    if not owners:
        first = replace(field_manager, manager=BEFORE_APPLY)
        owners = update_owners(kind, {}, {}, bare, first) if live else {}
    merged, after = _apply(kind, bare, config, (owners, field_manager))
    if field_manager.manager == KUBECTL:
        _update_last_applied(merged, config.document)
    if after:
        merged.setdefault("metadata", {})["managedFields"] = write_entries(after, owners)
    return merged


def check_configuration(kind: ResourceInfo, config: Mapping[str, Any]) -> None:
    """Raise StatusError (400, 500) if an applied configuration is invalid."""
    header = (config.get("apiVersion"), config.get("kind"))
    metadata = config.get("metadata")
    if header != (kind.api_version, kind.kind):
        raise bad_request(
            f"invalid object type: {_group_version(header[0])}, Kind={header[1] or ''}"
        )
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    listed = list_errors(schema_of(kind), config)
    if listed:
        named = f"({_named(config)}; {_go_kind(kind)})"
        raise StatusError(500, "", f"failed to create typed patch object {named}: {listed}")


def conversion_failure(kind: ResourceInfo, config: Mapping[str, Any], detail: str) -> StatusError:
    """Return the 500 for an applied configuration whose values do not fit the Go type."""
    target = _go_kind(kind)
    return StatusError(
        500,
        "",
        f"failed to convert new object ({_named(config)}; {target}) to proper version: "
        f"unable to convert unstructured object to {target}: {detail}",
    )


def _named(config: Mapping[str, Any]) -> str:
    metadata = config.get("metadata")
    where = metadata if isinstance(metadata, dict) else {}
    return f"{where.get('namespace', '')}/{where.get('name', '')}"


def _go_kind(kind: ResourceInfo) -> str:
    return f"{_group_version(kind.api_version)}, Kind={kind.kind}"


def _group_version(api_version: Any) -> str:
    """Return a group and version as Go prints them: the core group is an empty name."""
    text = str(api_version or "/")
    return text if "/" in text else f"/{text}"


def _apply(
    kind: ResourceInfo,
    live: Mapping[str, Any],
    config: AppliedConfiguration,
    by: tuple[Owners, FieldManager],
) -> tuple[dict[str, Any], Owners]:
    owners, writer = by
    shape, version = schema_of(kind), kind.api_version
    owner = Owner(writer.manager, APPLY, subresource=writer.subresource)
    last = owners.get(owner, OwnedFields(EMPTY, version))
    claimed = writable_fields(kind, writer.subresource, to_field_set(shape, config.document))
    merged = merge(shape, live, config.document)
    now = {**owners, owner: OwnedFields(claimed, version, writer.time)}
    if last.version == version:
        owned = [entry.fields for entry in now.values() if entry.version == version]
        merged = prune(shape, merged, last.fields, owned)
    comparison = compare_versions(kind, live, merged, writer.subresource)
    conflicts = [
        (other, path)
        for other, entry in sorted(now.items())
        if other != owner and entry.version == version
        for path in paths(intersection(entry.fields, comparison.changed))
    ]
    if conflicts and not config.force:
        _check_conflicts(kind, live, conflicts, writer)
    after = take_from_others(now, version, comparison, owner)
    fields = strip(claimed)
    if not fields:
        after.pop(owner, None)
        return without_nulls(merged), after
    time = last.time if merged == live else writer.time  # the time of the last change
    after[owner] = OwnedFields(last.fields if last.fields == fields else fields, version, time)
    return without_nulls(merged), after


Conflict = tuple[Owner, Path]


def _check_conflicts(
    kind: ResourceInfo,
    live: Mapping[str, Any],
    conflicts: list[Conflict],
    field_manager: FieldManager,
) -> None:
    """Raise StatusError (409), unless kubectl has applied all these fields on the client side."""
    if field_manager.manager == KUBECTL:
        own = _client_side_applied(kind, live)
        conflicts = [conflict for conflict in conflicts if not contains(own, conflict[1])]
    if conflicts:
        raise conflict_error(conflicts)


def conflict_error(conflicts: list[Conflict]) -> StatusError:
    """Return the StatusError (409) of fields that an apply changes and others own."""
    causes = [
        Cause("FieldManagerConflict", f"conflict with {owner}", describe(path)).document()
        for owner, path in conflicts
    ]
    if len(conflicts) == 1:
        owner, path = conflicts[0]
        message = f"1 conflict: conflict with {owner}: {describe(path)}"
    else:
        grouped: dict[Owner, list[str]] = {}
        for owner, path in conflicts:
            grouped.setdefault(owner, [f"conflicts with {owner}:"]).append(f"- {describe(path)}")
        lines = "\n".join(line for group in grouped.values() for line in group)
        message = f"{len(conflicts)} conflicts: {lines}"
    return StatusError(409, "Conflict", f"Apply failed with {message}", {"causes": causes})


def _client_side_applied(kind: ResourceInfo, live: Mapping[str, Any]) -> FieldSet:
    """Return the fields of the last-applied annotation that still have their applied values."""
    text = _annotations(live).get(LAST_APPLIED)
    try:
        applied = orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return EMPTY
    shape = schema_of(kind)
    if not isinstance(applied, dict) or applied.get("apiVersion") != kind.api_version:
        return EMPTY
    if validation_errors(shape, applied):
        return EMPTY
    comparison = compare(shape, applied, live)
    changed = union(comparison.changed, comparison.removed)
    return difference(to_field_set(shape, applied), changed)


def _update_last_applied(merged: dict[str, Any], config: Mapping[str, Any]) -> None:
    """Update the last-applied annotation of an object, if it has one, to the configuration."""
    annotations = _annotations(merged)
    if not annotations.get(LAST_APPLIED):
        return
    applied = {**config, "metadata": dict(config.get("metadata") or {})}
    if "annotations" in applied["metadata"]:
        own = _annotations(config)
        kept = {key: value for key, value in own.items() if key != LAST_APPLIED}
        applied["metadata"]["annotations"] = kept
    text = orjson.dumps(applied, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    merged["metadata"] = {**merged["metadata"], "annotations": {**annotations, LAST_APPLIED: text}}


def _annotations(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return (document.get("metadata") or {}).get("annotations") or {}


def _without_entries(document: Mapping[str, Any]) -> dict[str, Any]:
    metadata = document.get("metadata") or {}
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    return {**document, "metadata": kept} if document else {}
