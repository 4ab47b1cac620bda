"""Validation of schemas: the OpenAPI fields that are allowed, and list and map types.

Source: ValidateCustomResourceDefinitionOpenAPISchema in pkg/apis/apiextensions/validation/
validation.go of k8s.io/apiextensions-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from extender.cel.parser import MISSING, is_installed
from fakeapi.apiserver.schema.crds.structural_validation import default_errors, structural_errors
from fakeapi.apiserver.schema.structural.schema_tree import META_FIELDS, Json, SchemaNode, node_of
from fakeapi.apiserver.wire.errors import (
    Cause,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = (
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
)
_QUANTIFIERS: Final = ("allOf", "oneOf", "anyOf")
_LIST_TYPE: Final = "x-kubernetes-list-type"
_MAP_TYPE: Final = "x-kubernetes-map-type"
_KEYS: Final = "x-kubernetes-list-map-keys"
_RULES: Final = "x-kubernetes-validations"
_BELOW_STATUS: Final = frozenset(
    [
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
        "externalDocs",
        "example",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    ]
)
_BELOW_STATUS_SHOWN: Final = (
    "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength "
    "MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties "
    "ExternalDocs Example XPreserveUnknownFields XValidations]"
)
_ITEM_TYPE: Final = "must be object if parent array's x-kubernetes-list-type is map"
_ATOMIC: Final = "must be atomic as item of a list with x-kubernetes-list-type=set"


@dataclass(frozen=True, slots=True)
class SchemaPath:
    """The path of a nested schema, and its context.

    ``no_defaults`` is the reason why defaults are forbidden (None: they are allowed);
    ``in_metadata``: the schema applies to an object's metadata; ``uncorrelated`` is the path of the
    enclosing list whose elements cannot be correlated with those of the old object.
    """

    path: str
    node: SchemaNode | None
    root: bool = False
    no_defaults: str | None = None
    in_metadata: bool = False
    uncorrelated: str = ""

    def below(self, step: str, node: SchemaNode | None = None) -> SchemaPath:
        """Return the path of a schema one level below."""
        return replace(self, path=f"{self.path}.{step}", node=node, root=False)


def schema_errors(schema: Json, path: str, *, has_status: bool) -> list[Cause]:
    """Return the errors of a version's schema; ``has_status``: status is a subresource."""
    causes = list(_root_errors(schema, path)) if has_status else []
    if schema.get("nullable"):
        causes.append(forbidden_field(f"{path}.nullable", "nullable cannot be true at the root"))
    structural = structural_errors(schema, path)
    node = None
    if not structural:
        node = node_of(schema)
        defaults = list(default_errors(replace(node, embedded=True), path))
        causes += defaults
        node = node if not defaults else None
    causes += structural
    found = _SchemaErrorCollector()
    found.visit(schema, SchemaPath(path, node, root=True))
    return [*causes, *found.plain, *found.rules]


def _root_errors(schema: Json, path: str) -> Iterator[Cause]:
    if schema.get("type", "object") != "object":
        rule = (
            'only "object" is allowed as the type at the root of the schema if the status '
            "subresource is enabled"
        )
        yield invalid_value(f"{path}.type", schema["type"], rule)
    elif not set(schema) <= _BELOW_STATUS:
        rule = (
            f"only {_BELOW_STATUS_SHOWN} fields are allowed at the root of the schema if the "
            "status subresource is enabled"
        )
        yield invalid_value(path, schema, rule)


class _SchemaErrorCollector:
    """Collects the errors of a schema, and separately those of its CEL rules."""

    def __init__(self) -> None:
        self.plain: list[Cause] = []
        self.rules: list[Cause] = []

    def visit(self, schema: Json, place: SchemaPath) -> None:
        """Validate a schema and its nested schemas."""
        before = len(self.plain)
        path = place.path
        self.plain += _field_errors(schema, place)
        additional = schema.get("additionalProperties")
        if additional is not None and schema.get("properties") and additional is not True:
            rule = "additionalProperties and properties are mutual exclusive"
            self.plain.append(forbidden_field(f"{path}.additionalProperties", rule))
        if isinstance(additional, dict):
            self._visit_additional(additional, place)
        for name, below in (schema.get("properties") or {}).items():
            self._visit_property(schema, name, below, place)
        self._visit_nested(schema, place)
        if isinstance(schema.get("items"), dict):
            self._visit_items(schema, place)
        self.plain += _list_type_errors(schema, path)
        self._visit_rules(schema, place, sound=len(self.plain) == before)

    def _visit_additional(self, schema: Json, place: SchemaPath) -> None:
        below = place.below("additionalProperties", place.node.additional if place.node else None)
        if place.in_metadata:
            detail = "inside additionalProperties applying to object metadata"
            below = replace(below, no_defaults=detail)
        self.visit(schema, below)

    def _visit_property(self, schema: Json, name: str, below: Json, place: SchemaPath) -> None:
        node = place.node.properties.get(name) if place.node is not None else None
        where = place.below(f"properties[{name}]", node)
        if (place.root or schema.get("x-kubernetes-embedded-resource")) and name in META_FIELDS:
            reason = f"in top-level {name}" if place.root else where.no_defaults
            where = replace(where, in_metadata=True, no_defaults=reason)
        self.visit(below, where)

    def _visit_nested(self, schema: Json, place: SchemaPath) -> None:
        if schema.get("not") is not None:
            self.visit(schema["not"], place.below("not"))
        for name in _QUANTIFIERS:
            for index, below in enumerate(schema.get(name) or ()):
                self.visit(below, place.below(f"{name}[{index}]"))

    def _visit_items(self, schema: Json, place: SchemaPath) -> None:
        where = place.below("items", place.node.items if place.node is not None else None)
        if schema.get(_LIST_TYPE) != "map" and not place.uncorrelated:
            where = replace(where, uncorrelated=place.path)
        self.visit(schema["items"], where)

    def _visit_rules(self, schema: Json, place: SchemaPath, *, sound: bool) -> None:
        rules = schema.get(_RULES) or ()
        own = node_of(schema) if rules and sound else None
        if own is None:
            return
        # imports the type checker
        from fakeapi.apiserver.schema.cel.rule_validation import rule_errors

        for index, rule in enumerate(rules):
            where = f"{place.path}.{_RULES}[{index}]"
            faults = list(rule_errors(rule, own, where))
            self.plain += faults
            if place.node is not None and not faults:
                self.rules += _expression_errors(rule, place.node, place, where)


def _expression_errors(
    rule: Json, node: SchemaNode, place: SchemaPath, path: str
) -> Iterator[Cause]:
    if not is_installed():
        yield forbidden_field(f"{path}.rule", MISSING)
        return
    from fakeapi.apiserver.schema.cel.declared_types import declared_type
    from fakeapi.apiserver.schema.cel.rule_validation import SELF_TYPE, expression_errors

    is_resource = place.root or node.embedded
    declared = declared_type(node, SELF_TYPE, is_resource=is_resource)
    if declared is not None:
        yield from expression_errors(rule, declared, path, uncorrelated=place.uncorrelated)


def _field_errors(schema: Json, place: SchemaPath) -> Iterator[Cause]:
    path, kind = place.path, schema.get("type", "")
    if kind and kind not in _TYPES:
        yield unsupported_value(f"{path}.type", kind, _TYPES)
    if "default" in schema and place.no_defaults is not None:
        yield forbidden_field(f"{path}.default", f"must not be set {place.no_defaults}".rstrip())
    for name in _UNSUPPORTED:
        if schema.get(name) not in (None, ""):
            yield forbidden_field(f"{path}.{name}", f"{name} is not supported")
    if kind == "null":
        rule = "type cannot be set to null, use nullable as an alternative"
        yield forbidden_field(f"{path}.type", rule)
    if isinstance(schema.get("items"), list):
        rule = "items must be a schema object and not an array"
        yield forbidden_field(f"{path}.items", rule)
    if place.in_metadata and schema.get("x-kubernetes-embedded-resource"):
        where = f"{path}.x-kubernetes-embedded-resource"
        yield forbidden_field(where, "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        rule = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden_field(f"{path}.uniqueItems", rule)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        where = f"{path}.x-kubernetes-preserve-unknown-fields"
        yield invalid_value(where, value=False, detail="must be true or undefined")


def _list_type_errors(schema: Json, path: str) -> Iterator[Cause]:
    yield from _typed(schema, path, _MAP_TYPE, "object")
    map_type, list_type = schema.get(_MAP_TYPE), schema.get(_LIST_TYPE)
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield unsupported_value(f"{path}.{_MAP_TYPE}", map_type, ("atomic", "granular"))
    wrong = list(_typed(schema, path, _LIST_TYPE, "array"))
    yield from wrong
    items = schema.get("items")
    element = items if isinstance(items, dict) else None
    if not wrong and list_type == "set" and element is not None:
        yield from _set_errors(element, path)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield unsupported_value(f"{path}.{_LIST_TYPE}", list_type, ("atomic", "set", "map"))
    if schema.get(_KEYS) and list_type != "map":
        rule = "must be map if x-kubernetes-list-map-keys is non-empty"
        where = f"{path}.{_LIST_TYPE}"
        yield required(where, rule) if list_type is None else invalid_value(where, list_type, rule)
    if list_type == "map":
        yield from _map_errors(schema, element, path)
    if list_type in ("set", "map") and element is not None:
        yield from _key_errors(schema, element, path)


def _typed(schema: Json, path: str, extension: str, expected: str) -> Iterator[Cause]:
    """Return the error of an extension that requires another type of schema."""
    kind = schema.get("type", "")
    if schema.get(extension) is not None and kind != expected:
        rule, where = f"must be {expected} if {extension} is specified", f"{path}.type"
        yield invalid_value(where, kind, rule) if kind else required(where, rule)


def _set_errors(element: Json, path: str) -> Iterator[Cause]:
    kind = element.get("type")
    if kind == "array" and element.get(_LIST_TYPE, "atomic") != "atomic":
        yield invalid_value(f"{path}.items.{_LIST_TYPE}", element[_LIST_TYPE], _ATOMIC)
    elif kind == "object" and element.get(_MAP_TYPE) != "atomic":
        yield invalid_value(f"{path}.items.{_MAP_TYPE}", element.get(_LIST_TYPE), _ATOMIC)


def _map_errors(schema: Json, element: Json | None, path: str) -> Iterator[Cause]:
    keys: list[Any] = schema.get(_KEYS) or []
    if not keys:
        rule = "must not be empty if x-kubernetes-list-type is map"
        yield required(f"{path}.{_KEYS}", rule)
    if element is None:
        rule = "must have a schema if x-kubernetes-list-type is map"
        yield required(f"{path}.items", rule)
        return
    if element.get("type") != "object":
        yield invalid_value(f"{path}.items.type", element.get("type", ""), _ITEM_TYPE)
        return
    properties = element.get("properties") or {}
    for index, key in enumerate(keys):
        if key not in properties:
            rule = "entries must all be names of item properties"
            yield invalid_value(f"{path}.{_KEYS}", keys, rule)
        elif properties[key].get("type") in ("array", "object"):
            where = f"{path}.items.properties[{key}].type"
            rule = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid_value(where, element["type"], rule)
        if key in keys[:index]:
            yield invalid_value(f"{path}.{_KEYS}", keys, "must not contain duplicate entries")


def _key_errors(schema: Json, element: Json, path: str) -> Iterator[Cause]:
    if element.get("nullable"):
        rule = f"cannot be nullable when x-kubernetes-list-type is {schema[_LIST_TYPE]}"
        yield forbidden_field(f"{path}.items.nullable", rule)
    if schema[_LIST_TYPE] != "map":
        return
    properties, musts = element.get("properties") or {}, element.get("required") or ()
    for key in schema.get(_KEYS) or ():
        below, where = properties.get(key), f"{path}.items.properties[{key}]"
        if below is None:
            continue
        subject = "this property is in x-kubernetes-list-map-keys, so it"
        if key not in musts and below.get("default") is None:
            yield required(
                f"{where}.default", f"{subject} must have a default or be a required property"
            )
        if below.get("nullable"):
            yield forbidden_field(f"{where}.nullable", f"{subject} cannot be nullable")
