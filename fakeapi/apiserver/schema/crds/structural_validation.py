"""Validation of structural schemas, and of their defaults.

The type of every field must be specified outside quantifiers, and each default must be valid in its
schema.

Sources: pkg/apiserver/schema (validation.go, complete.go, defaulting/validation.go) of
k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from extender.cel.compilation import ExpressionError
from extender.cel.parser import is_installed
from fakeapi.apiserver.schema.cel.evaluation import collect_causes, value_walk
from fakeapi.apiserver.schema.cel.field_paths import FieldPathError
from fakeapi.apiserver.schema.structural.embedded_objects import (
    decode_embedded,
    embedded_errors,
    embedded_object_finder,
)
from fakeapi.apiserver.schema.structural.pruning_and_defaulting import prune
from fakeapi.apiserver.schema.structural.schema_errors import SchemaErrors, causes_of
from fakeapi.apiserver.schema.structural.schema_tree import ABSENT, META_FIELDS, Json, SchemaNode
from fakeapi.apiserver.schema.structural.schema_validator import compile_validator
from fakeapi.apiserver.wire.errors import Cause, forbidden_field, invalid_value, required
from fakeapi.apiserver.wire.raw_json import json_equal
from fakeapi.apiserver.wire.struct_decoder import StructDecodeError
from policies.kubernetes.regular_expressions import compile_pattern

ROOT: Final = "root"
ITEM: Final = "item"
FIELD: Final = "field"

_EMBEDDED_TYPE: Final = "must be object if x-kubernetes-embedded-resource is true"
_UNTYPED: Final = {
    ROOT: "must not be empty at the root",
    ITEM: "must not be empty for specified array items",
    FIELD: "must not be empty for specified object fields",
}
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_PRESERVES: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_EITHER: Final = "x-kubernetes-int-or-string"
_EMPTY: Final = "must be empty to be structural"
_UNDEFINED: Final = "must be undefined to be structural"
_FALSE: Final = "must be false to be structural"
_FORBIDDEN_INSIDE: Final = {
    "type": _EMPTY,
    "additionalProperties": _UNDEFINED,
    "default": _UNDEFINED,
    "title": _EMPTY,
    "description": _EMPTY,
    "nullable": _FALSE,
    "externalDocs": _UNDEFINED,
    _PRESERVES: _FALSE,
    _EMBEDDED: _FALSE,
    _EITHER: _FALSE,
    "x-kubernetes-list-map-keys": _EMPTY,
    "x-kubernetes-list-type": _UNDEFINED,
    "x-kubernetes-map-type": _UNDEFINED,
    "x-kubernetes-validations": _EMPTY,
}


def structural_errors(schema: Json, path: str) -> list[Cause]:
    """Return the errors that make a schema not structural, in upstream's order."""
    causes = [*_invariants(schema, ROOT, path), *_completeness(schema, schema, path, path)]
    return sorted(causes, key=lambda cause: f"{cause.field}: {cause.message}")


def _invariants(schema: Json, level: str, path: str) -> Iterator[Cause]:
    kind = schema.get("type", "")
    items, properties = schema.get("items"), schema.get("properties") or {}
    if kind == "array" and items is None:
        yield required(f"{path}.items", "must be specified")
    if isinstance(items, dict):
        yield from _invariants(items, ITEM, f"{path}.items")
    for name, below in properties.items():
        yield from _invariants(below, FIELD, f"{path}.properties[{name}]")
    additional = schema.get("additionalProperties")
    if additional is not None and level == ROOT:
        yield forbidden_field(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(additional, dict):
        yield from _invariants(additional, FIELD, f"{path}.additionalProperties")
    yield from _extensions(schema, path)
    yield from _value_rules(schema, path, skips=_int_or_string_pattern(schema))
    yield from _typing(schema, level, path)
    if level == ROOT or schema.get(_EMBEDDED):
        yield from _type_meta(properties, path)
    if "metadata" in properties:
        is_checked = level == ROOT or bool(schema.get(_EMBEDDED))
        where = f"{path}.properties[metadata]"
        yield from _metadata(properties["metadata"], where, typed=is_checked, root=level == ROOT)


def _extensions(schema: Json, path: str) -> Iterator[Cause]:
    for name in (_PRESERVES, _EMBEDDED):
        if schema.get(_EITHER) and schema.get(name):
            rule = f"must be false if {_EITHER} is true"
            yield invalid_value(f"{path}.{name}", schema[name], rule)


def _typing(schema: Json, level: str, path: str) -> Iterator[Cause]:
    kind, embedded = schema.get("type", ""), bool(schema.get(_EMBEDDED))
    if embedded and kind != "object":
        where = f"{path}.type"
        yield (
            invalid_value(where, kind, _EMBEDDED_TYPE) if kind else required(where, _EMBEDDED_TYPE)
        )
    elif not kind and not schema.get(_EITHER) and not schema.get(_PRESERVES):
        yield required(f"{path}.type", _UNTYPED[level])
    if embedded and schema.get("additionalProperties") is not None:
        rule = f"must not be used if {_EMBEDDED} is set"
        yield forbidden_field(f"{path}.additionalProperties", rule)
    if level == ROOT and kind not in ("", "object"):
        yield invalid_value(f"{path}.type", kind, "must be object at the root")
    if embedded and not schema.get(_PRESERVES) and not schema.get("properties"):
        rule = f"must not be empty if {_EMBEDDED} is true without {_PRESERVES}"
        yield required(f"{path}.properties", rule)


def _type_meta(properties: Mapping[str, Json], path: str) -> Iterator[Cause]:
    for name in ("kind", "apiVersion"):
        kind = properties[name].get("type", "") if name in properties else "string"
        if kind != "string":
            yield invalid_value(f"{path}.properties[{name}].type", kind, "must be string")


def _metadata(schema: Json, path: str, *, typed: bool, root: bool) -> Iterator[Cause]:
    if typed and schema.get("type") != "object":
        yield invalid_value(f"{path}.type", schema.get("type", ""), "must be object")
    if not root:
        return
    names = set(schema.get("properties") or ())
    others = set(schema) - {"type", "default", "properties"}
    if not names <= {"name", "generateName"} or others:
        rule = (
            "must not specify anything other than name and generateName, but metadata is "
            "implicitly specified"
        )
        yield forbidden_field(path, rule)


def _int_or_string_pattern(schema: Json) -> str:
    """Return the quantifier that declares int-or-string in an allowed form; "" if there is none."""
    if schema.get("anyOf") == _INT_OR_STRING:
        return "anyOf"
    every = schema.get("allOf") or [{}]
    return "allOf" if every[0].get("anyOf") == _INT_OR_STRING else ""


def _value_rules(schema: Json, path: str, *, skips: str = "") -> Iterator[Cause]:
    for name in ("anyOf", "allOf", "oneOf"):
        for index, below in enumerate(schema.get(name) or ()):
            if name == "anyOf" and skips == "anyOf":
                continue
            inside = "anyOf" if name == "allOf" and index == 0 and skips == "allOf" else ""
            yield from _nested(below, f"{path}.{name}[{index}]", skips=inside)
    if schema.get("not") is not None:
        yield from _nested(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_pattern(pattern)
        except ValueError as error:
            rule = f"must be a valid regular expression, but isn't: {error}"
            yield invalid_value(f"{path}.pattern", pattern, rule)


def _nested(schema: Json, path: str, *, skips: str = "") -> Iterator[Cause]:
    yield from _value_rules(schema, path, skips=skips)
    if isinstance(schema.get("items"), dict):
        yield from _nested(schema["items"], f"{path}.items")
    properties = schema.get("properties") or {}
    for name, below in properties.items():
        yield from _nested(below, f"{path}.properties[{name}]")
    for name, rule in _FORBIDDEN_INSIDE.items():
        if schema.get(name) not in (None, "", False, []):
            yield forbidden_field(f"{path}.{name}", rule)
    if "metadata" in properties:
        where = f"{path}.properties[metadata]"
        yield forbidden_field(where, "must not be specified in a nested context")


def _completeness(rules: Json, schema: Json | None, path: str, rule_path: str) -> Iterator[Cause]:
    """Return the errors of fields that only quantifiers define, not the schema itself."""
    for name, listed in (("not", [rules.get("not")]), *((n, rules.get(n)) for n in _LISTS)):
        for index, below in enumerate(listed or ()):
            if below is not None:
                where = f"{rule_path}.not" if name == "not" else f"{rule_path}.{name}[{index}]"
                yield from _nested_completeness(below, schema, path, where)


_LISTS: Final = ("allOf", "anyOf", "oneOf")


def _nested_completeness(
    rules: Json, schema: Json | None, path: str, rule_path: str
) -> Iterator[Cause]:
    if schema is None:
        yield required(path, f"because it is defined in {rule_path}")
        return
    yield from _completeness(rules, schema, path, rule_path)
    if isinstance(rules.get("items"), dict):
        items = schema.get("items")
        below: Any = items if isinstance(items, dict) else None
        yield from _nested_completeness(
            rules["items"], below, f"{path}.items", f"{rule_path}.items"
        )
    properties = schema.get("properties") or {}
    for name, below in (rules.get("properties") or {}).items():
        where = f"properties[{name}]"
        yield from _nested_completeness(
            below, properties.get(name), f"{path}.{where}", f"{rule_path}.{where}"
        )


def default_errors(node: SchemaNode, path: str) -> Iterator[Cause]:
    """Return the errors of all defaults of a structural schema."""
    if node.default is not ABSENT:
        yield from _own_errors(node, f"{path}.default")
    if node.items is not None:
        yield from default_errors(node.items, f"{path}.items")
    for name, below in node.properties.items():
        yield from default_errors(below, f"{path}.properties[{name}]")


def _own_errors(node: SchemaNode, path: str) -> Iterator[Cause]:
    default = deepcopy(node.default)
    kept = {}
    if node.embedded and isinstance(default, dict):
        kept = {name: default.pop(name) for name in META_FIELDS if name in default}
    prune(node, default)
    if kept:
        default.update(kept)
    if not json_equal(default, node.default):
        yield invalid_value(path, node.default, "must not have unknown fields")
    find = embedded_object_finder(node)
    if find is not None and isinstance(default, dict):
        try:
            decode_embedded(find, default)
        except StructDecodeError as error:
            yield invalid_value(path, node.default, f"must result in valid metadata: {error}")
            return
        yield from (_moved(cause, path) for cause in embedded_errors(find, default))
    faults: SchemaErrors = []
    compile_validator(node.schema)(node.default, ABSENT, None, faults)
    causes = causes_of(faults, path)
    yield from causes
    if not causes and is_installed():
        try:
            yield from collect_causes(value_walk(node), node.default, node.default, path)
        except (ExpressionError, FieldPathError):
            return  # reported for the rule itself


def _moved(cause: Cause, path: str) -> Cause:
    return Cause(cause.reason, cause.message, f"{path}.{cause.field}".replace("..", "."))
