"""The archive ``builtin.zip``: kinds, schemas and descriptions, read on first use.

:mod:`fakeapi.kinds.generate` generates it. A definition has its OpenAPI name,
``io.k8s.api.core.v1.Pod``: the package, a dot, the short name. A package is one member of the
archive and is parsed once. The structural type of a definition is built once; a reference becomes
the struct of the definition that it names. A definition may refer to itself, so its struct is
created before its fields.

A component that manages custom resources installs their definition (deploy/crds, as JSON) when it
starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from zipfile import ZipFile

import orjson

from fakeapi.apiserver.kinds.structural_types import (
    UNTYPED,
    Field,
    ListType,
    MapType,
    Merge,
    Scalar,
    Struct,
    Type,
)

_ARCHIVE: Final = Path(__file__).with_name("data") / "builtin.zip"
SCHEMA_REF_PREFIX: Final = "#/components/schemas/"


def read_kinds() -> Sequence[Mapping[str, Any]]:
    """Return the generated data of every built-in kind, in the order of discovery."""
    kinds: Sequence[Mapping[str, Any]] = _read("kinds.json")
    return kinds


def read_schema(definition: str) -> Mapping[str, Any]:
    """Return a definition's OpenAPI v3 schema, without descriptions; raises KeyError."""
    package, _, name = definition.rpartition(".")
    schema: Mapping[str, Any] = _package("schemas", package)[name]
    return schema


def read_description(definition: str) -> tuple[str, Mapping[str, str]]:
    """Return the description of a definition and of each of its fields; raises KeyError."""
    package, _, name = definition.rpartition(".")
    own, fields = _package("descriptions", package)[name]
    return own, fields


@cache
def fingerprint() -> str:
    """Return a value that changes with the archive's content."""
    return ",".join(f"{member.CRC:08x}" for member in _archive().infolist())


def referenced_definition(schema: Mapping[str, Any]) -> str:
    """Return the name of the definition that a schema references, or ""."""
    if "allOf" in schema:
        schema = schema["allOf"][0]
    reference: str = schema.get("$ref", "")
    return reference.removeprefix(SCHEMA_REF_PREFIX)


@cache
def _package(part: str, package: str) -> Mapping[str, Any]:
    members: Mapping[str, Any] = _read(f"{part}/{package}.json")
    return members


def _read(member: str) -> Any:
    return orjson.loads(_archive().read(member))


@cache
def _archive() -> ZipFile:
    return ZipFile(_ARCHIVE)


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


SHIPPED_DEFINITIONS: Final[Mapping[str, str]] = {"workloadspread": "workloadspreads.json"}
"""The file with the definition of each component's kind."""


def shipped_definitions(components: Iterable[str]) -> list[dict[str, Any]]:
    """Return the definitions that are installed with some control-plane components."""
    files = [SHIPPED_DEFINITIONS[part] for part in components if part in SHIPPED_DEFINITIONS]
    return [orjson.loads((Path(__file__).with_name("data") / file).read_bytes()) for file in files]
