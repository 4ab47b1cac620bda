"""The validator of a schema: one function from a value to its errors, compiled once.

A schema has a list of checks for each type of JSON value, so that checks of strings do not run for
numbers. Items of a set and keys of a list of type map must be unique. A value that an update does
not change is not validated again (upstream's ratcheting), if its old value can be correlated; items
of a list only by the keys of a list of type map.

Sources: k8s.io/kube-openapi/pkg/validation/validate (schema.go, type.go, object_validator.go,
slice_validator.go), k8s.io/apiextensions-apiserver/pkg/apiserver (validation/ratcheting.go,
schema/listtype/validation.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from extender.cel.string_formats import FORMATS, known_format
from fakeapi.apiserver.schema.structural.schema_errors import (
    SchemaErrors,
    forbidden_property,
    missing_field,
    rule_error,
    too_many,
    type_error,
)
from fakeapi.apiserver.schema.structural.schema_tree import ABSENT, Json, SchemaNode
from fakeapi.apiserver.schema.structural.value_validation import (
    Check,
    enum_check,
    number_checks,
    quantifier_checks,
    text_checks,
)
from fakeapi.apiserver.wire.errors import Cause, duplicate, invalid_value
from fakeapi.apiserver.wire.raw_json import json_equal
from fakeapi.apiserver.wire.struct_decoder import LinkedPath

_TYPES: Final[Mapping[type, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}
_OWN_FORMATS: Final = {int: "int64", float: "double"}

Steps = tuple[tuple[Check, ...], int]


def compile_validator(schema: Json) -> Check:
    """Return the validator of a schema. Raise ValueError for an invalid pattern."""
    table = {kind: _steps(schema, kind) for kind in _TYPES}

    def check(value: Any, old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        if old is not ABSENT and value == old and json_equal(value, old):
            return 1
        steps, passed = table[value.__class__]
        for step in steps:
            passed += step(value, old, where, faults)
        return passed

    return check


def _steps(schema: Json, kind: type) -> Steps:
    """Return the checks for one type of values, and the number of checks that always pass."""
    type_check = _type_check(schema, kind)
    typed = bool(schema.get("type") or schema.get("x-kubernetes-int-or-string"))
    enum = enum_check(schema)
    enums = [enum] if enum is not None else []
    checks = [type_check] if type_check is not None else []
    if kind is type(None):
        return (*checks, *enums), int(type_check is None)
    passed = 4 + typed + (typed and type_check is None)
    checks += quantifier_checks(schema, compile_validator)
    if kind is str:
        checks += text_checks(schema)
        passed += 1 + (known_format(schema).replace("-", "") in FORMATS)
    elif kind in (int, float):
        checks += number_checks(schema)
        passed += 2
    elif kind is list:
        checks += _list_checks(schema)
        passed += 2
    checks += enums
    if kind is dict:
        checks += _object_checks(schema)
        passed += 1
    return tuple(checks), passed


def _type_check(schema: Json, kind: type) -> Check | None:
    """Return the check that rejects values of a type; None if the schema allows them."""
    types: tuple[str, ...] = (schema["type"],) if schema.get("type") else ()
    if schema.get("x-kubernetes-int-or-string"):
        types = ("integer", "string")
    form, found = known_format(schema), _TYPES[kind]
    if not types and not form:
        return None
    names = ",".join(types)
    if kind is type(None):
        welcome = not types or "null" in types or schema.get("nullable")
        return None if welcome else _type_error_check(names, "null")
    numeric = "number" in types or "integer" in types
    fits = found in types or (found == "integer" and "number" in types)
    if kind is float and "integer" in types:
        return _whole_number(form, names)
    if form and kind not in (str, list) and not fits:
        return _type_error_check(form, _OWN_FORMATS.get(kind, ""))
    if form and not numeric and kind in (str, list):
        return None
    return None if fits else _type_error_check(names, found)


def _type_error_check(types: str, found: str) -> Check:
    def check(_value: Any, _old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        faults.append(type_error(where, types, found))
        return 0

    return check


def _whole_number(form: str, names: str) -> Check:
    def check(value: float, _old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        if value.is_integer():
            return 1
        faults.append(
            type_error(where, form, "double") if form else type_error(where, names, "number")
        )
        return 0

    return check


def _list_checks(schema: Json) -> list[Check]:
    checks = []
    items = schema.get("items")
    if isinstance(items, dict):
        checks.append(_elements(schema, compile_validator(items)))
    least, most = schema.get("minItems"), schema.get("maxItems")

    def check(value: list[Any], _old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        if least is not None and len(value) < least:
            faults.append(rule_error(where, len(value), f"should have at least {least} items"))
        if most is not None and len(value) > most:
            faults.append(too_many(where, len(value), most))
        return 0

    return checks if least is None and most is None else [*checks, check]


def _elements(schema: Json, element: Check) -> Check:
    keyed = schema.get("x-kubernetes-list-type") == "map"
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())

    def check(value: list[Any], old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        before = by_key(old, keys) if keyed and old.__class__ is list else None
        passed = 0
        for index, item in enumerate(value):
            was = before.get(key_of(item, keys), ABSENT) if before else ABSENT
            passed += element(item, was, (where, f"[{index}]"), faults)
        return passed

    return check


def by_key(items: list[Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the items of a list of type map by their keys."""
    return {key_of(item, keys): item for item in items}


def key_of(item: Any, keys: tuple[str, ...]) -> str:
    """Return the key that identifies an item of a list of type map."""
    return repr([item.get(key) for key in keys] if isinstance(item, dict) else None)


def _object_checks(schema: Json) -> list[Check]:
    checks = []
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None or most is not None:
        checks.append(_size(least, most))
    additional = schema.get("additionalProperties")
    declared = frozenset(schema.get("properties") or ())
    if isinstance(additional, dict):
        checks.append(_additional(compile_validator(additional), declared))
    elif additional is False:
        checks.append(_no_additional(declared))
    children = tuple((n, compile_validator(s)) for n, s in (schema.get("properties") or {}).items())
    required = tuple(schema.get("required") or ())
    if children or required:
        checks.append(_properties_check(children, required))
    return checks


def _size(least: int | None, most: int | None) -> Check:
    def check(value: dict[str, Any], _old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        if least is not None and len(value) < least:
            faults.append(rule_error(where, len(value), f"should have at least {least} properties"))
        if most is not None and len(value) > most:
            faults.append(too_many(where, len(value), most))
        return 0

    return check


def _additional(other: Check, declared: frozenset[str]) -> Check:
    def check(value: dict[str, Any], old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        before = old if old.__class__ is dict else {}
        passed = 0
        for name, item in value.items():
            if name not in declared:
                passed += other(item, before.get(name, ABSENT), (where, name), faults)
        return passed

    return check


def _no_additional(declared: frozenset[str]) -> Check:
    def check(value: dict[str, Any], _old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        for name in value:
            if name not in declared:
                faults.append(forbidden_property(where, name))
        return 0

    return check


def _properties_check(children: tuple[tuple[str, Check], ...], required: tuple[str, ...]) -> Check:
    def check(value: dict[str, Any], old: Any, where: LinkedPath, faults: SchemaErrors) -> int:
        before = old if old.__class__ is dict else {}
        passed = 0
        for name, child in children:
            if name in value:
                passed += child(value[name], before.get(name, ABSENT), (where, name), faults)
        for name in required:
            if name not in value:
                faults.append(missing_field((where, name)))
        return passed

    return check


DuplicateItemsCheck = Callable[[Any, str], Iterator[Cause]]


def duplicate_items_check(node: SchemaNode) -> DuplicateItemsCheck | None:
    """Return the check for duplicate items; None if the schema has neither sets nor maps."""
    parts = [
        part
        for part in (_own_items_check(node), _nested_fields_check(node), _nested_items_check(node))
        if part is not None
    ]
    if not parts:
        return None

    def check(value: Any, path: str) -> Iterator[Cause]:
        for part in parts:
            yield from part(value, path)

    return check


def _nested_fields_check(node: SchemaNode) -> DuplicateItemsCheck | None:
    declared = {name: duplicate_items_check(below) for name, below in node.properties.items()}
    checks = {name: check for name, check in declared.items() if check is not None}
    other = duplicate_items_check(node.additional) if node.additional is not None else None
    if not checks and other is None:
        return None

    def check(value: Any, path: str) -> Iterator[Cause]:
        for name, item in value.items() if isinstance(value, dict) else ():
            if name in checks:
                yield from checks[name](item, f"{path}.{name}" if path else name)
            elif other is not None and name not in node.properties:
                yield from other(item, f"{path}[{name}]")

    return check


def _nested_items_check(node: SchemaNode) -> DuplicateItemsCheck | None:
    below = duplicate_items_check(node.items) if node.items is not None else None
    if below is None:
        return None

    def check(value: Any, path: str) -> Iterator[Cause]:
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from below(item, f"{path}[{index}]")

    return check


def _own_items_check(node: SchemaNode) -> DuplicateItemsCheck | None:
    if node.list_type == "set":
        return _set
    if node.list_type != "map":
        return None
    keys = node.list_keys

    def check(value: Any, path: str) -> Iterator[Cause]:
        if not isinstance(value, list):
            return
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                rule = "must be an object for an array of list-type map"
                yield invalid_value(f"{path}[{index}]", item, rule)
                return
        found = [{key: item[key] for key in keys if key in item} if item else {} for item in value]
        for index in _repeated(found):
            yield duplicate(f"{path}[{index}]", found[index])

    return check


def _set(value: Any, path: str) -> Iterator[Cause]:
    for index in _repeated(value) if isinstance(value, list) else ():
        yield duplicate(f"{path}[{index}]", value[index])


def _repeated(values: Sequence[Any]) -> list[int]:
    """Return the index of the second occurrence of each repeated value."""
    if len(values) < 2:
        return []
    seen: dict[bytes, int] = {}
    places = []
    for index, value in enumerate(values):
        key = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            places.append(index)
    return places
