"""The values of mutations, applied to the object of a request in the version of the policy's rules.

ApplyConfiguration    a configuration is merged into the object as by server-side apply, but without
                      owners; atomic lists, maps and structs may not be part of it
JSONPatch             operations are applied; if one is a test that fails, none of them is

A message has the type of its place: that of ``spec.template`` is ``Object.spec.template``.

Sources: k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/{smd,json_patch}.go;
k8s.io/apiserver/pkg/cel/mutation/dynamic/objects.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from extender.cel.macros import TYPE_KEY
from fakeapi.apiserver.admission.webhooks.admission_review import object_kind
from fakeapi.apiserver.admission.webhooks.attributes import AdmissionAttributes, VersionedObjects
from fakeapi.apiserver.admission.webhooks.object_patches import (
    PatchError,
    PatchTestError,
    apply_operations,
    complete_object,
)
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.structural_types import ListType, MapType, Struct, Type, schema_of
from fakeapi.apiserver.managedfields.apply import list_errors
from fakeapi.apiserver.managedfields.merge import merge, without_nulls
from fakeapi.apiserver.schema.typed_document import read_document
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import internal_error
from fakeapi.apiserver.wire.strict_decoding import unknown_field
from fakeapi.apiserver.wire.struct_decoder import StructDecodeError

_ROOT: Final = "Object"
_NULL: Final = 0
"""The number of the only constant of protobuf's NullValue, which configurations have for null."""


def patched(
    versioned_objects: VersionedObjects,
    attributes: AdmissionAttributes,
    resource: ResourceInfo,
    patch_type: str,
    value: Any,
) -> Document | None:
    """Return the object of a request after a mutation; None if nothing changes.

    Raise PatchError, StatusError (500).
    """
    kind, form = attributes.kind, object_kind(resource, attributes)
    before = versioned_objects.to_version(form, kind, attributes.object) or {}
    if patch_type == "JSONPatch":
        after = _apply_json_patch(form, before, value)
    else:
        after = _apply_configuration(form, before, value)
    return complete_object(versioned_objects, kind, form, before, after)


def _apply_json_patch(form: ResourceInfo, before: Document, value: list[Document]) -> Document:
    operations = [_operation(each) for each in value]
    try:
        after = _copy(apply_operations(before, operations))
    except PatchTestError:
        return before
    except PatchError as error:
        raise PatchError(f"JSON Patch: {error}") from None
    header = after.get("apiVersion"), after.get("kind")
    if header != (form.api_version, form.kind):
        raise internal_error(f'no kind "{header[1]}" is registered for version "{header[0]}"')
    try:
        unknown = read_document(form, after)
    except StructDecodeError as error:
        raise internal_error(str(error)) from None
    if unknown:
        raise internal_error(f"strict decoding error: {', '.join(map(unknown_field, unknown))}")
    return after


def _operation(value: Document) -> Document:
    texts = {name: value.get(name) or "" for name in ("op", "path")}
    if value.get("from"):
        texts["from"] = value["from"]
    if value.get("value") is None:
        return texts
    content = value["value"]
    own = content.get(TYPE_KEY, _ROOT) if isinstance(content, dict) else _ROOT
    return {**texts, "value": _plain(content, own, None)}


def _apply_configuration(form: ResourceInfo, before: Document, value: Document) -> Document:
    plain = _plain(value, _ROOT, _NULL)
    config = {**plain, "apiVersion": form.api_version, "kind": form.kind}
    if wrong := _configuration_error(schema_of(form), config):
        raise PatchError(f"error applying patch: {wrong}")
    after = _copy(without_nulls(merge(schema_of(form), before, config)))
    try:
        read_document(form, after)
    except StructDecodeError as error:
        raise PatchError(f"error applying patch: {error}") from None
    return after


def _configuration_error(shape: Type, config: Document) -> str:
    """Return why a configuration cannot be merged; "" if it can."""
    if listed := list_errors(shape, config):
        return f"failed to convert patch object to typed object: {listed}"
    if atomics := ", ".join(_atomics(shape, config, "")):
        detail = f"may not mutate atomic arrays, maps or structs: {atomics}"
        return f"invalid ApplyConfiguration: {detail}"
    return ""


def _atomics(shape: Type, value: Any, path: str) -> Iterator[str]:
    """Yield the paths of atomic values, whose other fields a merge would remove."""
    if isinstance(value, dict) and isinstance(shape, Struct | MapType):
        if shape.atomic:
            yield path
        fields = shape.fields if isinstance(shape, Struct) else {}
        for name in (each for each in value if each in fields):
            yield from _atomics(fields[name].type, value[name], f"{path}.{name}")
    elif isinstance(value, list) and isinstance(shape, ListType):
        if shape.kind == "atomic":
            yield path
        for index, item in enumerate(value):
            yield from _atomics(shape.element, item, f"{path}[{index}]")


def _plain(value: Any, expected: str, null: int | None) -> Any:
    """Return a value without the types of its messages, which must be those of their places.

    ``null`` is the value of null. Raise PatchError.
    """
    if value is None:
        return null
    if isinstance(value, list):
        return [_plain(each, expected, null) for each in value]
    if isinstance(value, dict):
        found = value.get(TYPE_KEY)
        if found not in (None, expected):
            raise PatchError(
                f'type mismatch: unexpected type name "{found}", expected "{expected}", which '
                "matches field name path from root Object type"
            )
        return {
            name: _plain(item, expected if found is None else f"{expected}.{name}", null)
            for name, item in value.items()
            if name != TYPE_KEY
        }
    if isinstance(value, str | int | float):
        return value
    raise PatchError(f"a value of type {type(value).__name__} is no JSON")


def _copy(document: Document) -> Document:
    copied: Document = orjson.loads(orjson.dumps(document))
    return copied
