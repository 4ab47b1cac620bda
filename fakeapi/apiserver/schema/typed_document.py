"""Typed documents: a document is reduced to the fields of its kind, in place.

Built-in kinds are decoded by their Go structs (:mod:`fakeapi.apiserver.wire.struct_decoder`),
custom resources by the schema of their definition. The schemas in a definition are decoded by both:
``items`` and ``additionalProperties`` are a schema or another type (a list, a boolean), so the
structural type allows any value there; here they are decoded as schemas, so that their unknown
fields are removed, too.

Source: pkg/apis/apiextensions/v1/marshal.go of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.kinds.builtin import CUSTOM_RESOURCE_DEFINITIONS
from fakeapi.apiserver.kinds.schemas import struct_of
from fakeapi.apiserver.kinds.structural_types import schema_of
from fakeapi.apiserver.schema.crds.custom_resource_strategy import compiled_schema
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.struct_decoder import StructDecodeError, decode_struct

_SCHEMA: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_MAPS: Final = ("properties", "patternProperties", "definitions")
_LISTS: Final = ("allOf", "anyOf", "oneOf")


def decode_nested_schemas(definition: dict[str, Any]) -> list[str]:
    """Decode the nested schemas of a definition in place, and return the paths of unknown fields.

    The other fields of the definition are already decoded. Raise StructDecodeError.
    """
    unknown: list[str] = []
    versions = (definition.get("spec") or {}).get("versions") or ()
    for index, version in enumerate(versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if isinstance(schema, dict):
            _visit(schema, f"spec.versions[{index}].schema.openAPIV3Schema", unknown)
    return unknown


def _visit(schema: dict[str, Any], path: str, unknown: list[str]) -> None:
    for name in ("items", "additionalProperties", "additionalItems"):
        found = schema.get(name)
        if isinstance(found, dict):
            where = f"{path}.{name}"
            unknown += [f"{where}.{field}" for field in decode_struct(struct_of(_SCHEMA), found)]
            _visit(found, where, unknown)
        elif not _fits(name, found):
            kind = "JSONSchemaPropsOrArray" if name == "items" else "JSONSchemaPropsOrBool"
            raise StructDecodeError(
                f"json: cannot unmarshal {path}.{name} into Go value of type v1.{kind}"
            )
    for name in _MAPS:
        for key, below in (schema.get(name) or {}).items():
            _visit(below, f"{path}.{name}.{key}", unknown)
    for name in _LISTS:
        for index, below in enumerate(schema.get(name) or ()):
            _visit(below, f"{path}.{name}[{index}]", unknown)
    if isinstance(schema.get("not"), dict):
        _visit(schema["not"], f"{path}.not", unknown)


def _fits(name: str, value: Any) -> bool:
    """Return whether a value that is not a schema is allowed in a field for schemas."""
    if name == "items":
        return value is None or isinstance(value, list)
    return value is None or isinstance(value, bool)


def read_document(kind: ResourceInfo, document: Document) -> tuple[str, ...]:
    """Drop the fields that the kind does not have, and return their paths.

    Raise StructDecodeError.
    """
    if kind.custom is not None:
        return tuple(compiled_schema(kind.custom).prune(document))
    unknown = decode_struct(schema_of(kind), document)
    if kind is CUSTOM_RESOURCE_DEFINITIONS:
        return (*unknown, *decode_nested_schemas(document))
    return unknown
