"""Structural types built from the schemas in the archive; each definition is built once.

A reference becomes the struct of the definition that it names. A definition may refer to itself, so
its struct is created before its fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from fakeapi.kinds.archive import read_schema, referenced_definition
from fakeapi.kinds.types import (
    UNTYPED,
    Field,
    ListType,
    MapType,
    Merge,
    Scalar,
    Struct,
    Type,
)

_QUANTITY: Final = Scalar("quantity")
_INT_OR_STRING: Final = Scalar("int-or-string")
_UNTYPED_DEFINITIONS: Final = frozenset(("JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool"))

_KEY_DEFAULTS: Final = MappingProxyType({"protocol": "TCP"})
"""Defaults of list map keys (ports of containers and services), which the source omits."""

_types: dict[str, Type] = {}
_scalars: dict[tuple[str, str], Scalar] = {}


def struct_of(definition: str) -> Struct:
    """Return the struct of a definition with fields; raises KeyError for an unknown name."""
    found = _definition(definition)
    assert isinstance(found, Struct), definition
    return found


def _definition(name: str) -> Type:
    found = _types.get(name)
    if found is None:
        schema = read_schema(name)
        found = _types[name] = (
            _struct(name, schema) if "properties" in schema else _type_without_fields(schema)
        )
        if name.endswith(".MicroTime"):
            found = _types[name] = _scalar("string", "micro-time")
    return found


def _type_without_fields(schema: Mapping[str, Any]) -> Type:
    """Return the type of a definition without fields: a named scalar, or an untyped value."""
    if "oneOf" in schema:
        choices = {choice["type"] for choice in schema["oneOf"]}
        return _INT_OR_STRING if "integer" in choices else _QUANTITY
    return _type(schema)


def _struct(name: str, schema: Mapping[str, Any]) -> Struct:
    fields: dict[str, Field] = {}
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    struct = Struct(MappingProxyType(fields), atomic, name)
    _types[name] = struct
    required = frozenset(schema.get("required", ()))
    for key, below in schema["properties"].items():
        strategies = below.get("x-kubernetes-patch-strategy", "").split(",")
        replaces = "replace" in strategies
        fields[key] = Field(_type(below), key in required, replaces)
    return struct


def _type(schema: Mapping[str, Any]) -> Type:
    definition = referenced_definition(schema)
    if definition:
        return _referenced_type(definition, schema)
    kind = schema.get("type", "")
    if kind == "array":
        return _list(schema)
    if kind == "object":
        return _map(schema)
    return _scalar(kind, schema.get("format", "")) if kind else UNTYPED


def _referenced_type(definition: str, schema: Mapping[str, Any]) -> Type:
    """Return the referenced type; the referring schema may make it atomic."""
    if definition.rpartition(".")[2] in _UNTYPED_DEFINITIONS:
        return UNTYPED
    found = _definition(definition)
    if schema.get("x-kubernetes-map-type") == "atomic" and isinstance(found, Struct):
        return Struct(found.fields, atomic=True, name=found.name)
    return found


def _scalar(kind: str, form: str) -> Scalar:
    return _scalars.setdefault((kind, form), Scalar(kind, form))


def _map(schema: Mapping[str, Any]) -> Type:
    values = schema.get("additionalProperties")
    if not isinstance(values, dict):
        return UNTYPED
    return MapType(_type(values), schema.get("x-kubernetes-map-type") == "atomic")


def _list(schema: Mapping[str, Any]) -> ListType:
    element = _type(schema.get("items", {}))
    kind = schema.get("x-kubernetes-list-type", "atomic")
    keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
    merge = None
    if "merge" in schema.get("x-kubernetes-patch-strategy", "").split(","):
        merge = Merge(schema.get("x-kubernetes-patch-merge-key", ""))
    return ListType(element, kind, keys, merge, _key_defaults(schema, keys))


def _key_defaults(schema: Mapping[str, Any], keys: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the defaults of a list's keys; a required key has its type's zero value, as in Go."""
    definition = referenced_definition(schema.get("items", {}))
    if not keys or not definition:
        return MappingProxyType({})
    schema = read_schema(definition)
    properties, required = schema.get("properties", {}), schema.get("required", ())
    defaults: dict[str, Any] = {
        k: _KEY_DEFAULTS[k] for k in keys if k in _KEY_DEFAULTS and k in properties
    }
    for key in keys:
        if key in required:
            defaults[key] = 0 if properties[key].get("type") == "integer" else ""
    return MappingProxyType(defaults)
