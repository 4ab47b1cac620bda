"""The errors of values by a schema, in upstream's words."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.schema.structural.schema_errors import SchemaErrors, causes_of
from fakeapi.apiserver.schema.structural.schema_tree import ABSENT, node_of
from fakeapi.apiserver.schema.structural.schema_validator import (
    compile_validator,
    duplicate_items_check,
)
from tests.builders.definitions import INTEGER, TEXT, record

EITHER = {"x-kubernetes-int-or-string": True}


def errors_of(schema: dict[str, Any], value: Any, old: Any = ABSENT) -> list[str]:
    """Check the value of a field ``a``, and return the errors with their fields."""
    errors: SchemaErrors = []
    before = old if old is ABSENT else {"a": old}
    compile_validator(record(a=schema))({"a": value}, before, None, errors)
    return [f"{cause.field}: {cause.message}" for cause in causes_of(errors)]


def invalid(value: str, message: str) -> list[str]:
    return [f"a: Invalid value: {value}: a in body {message}"]


def schema_error(message: str) -> str:
    return f'<nil>: Invalid value: "": {message}'


def type_error(expected: str, found: str, field: str = "a") -> str:
    return (
        f'{field}: Invalid value: "{found}": {field} in body must be of type {expected}: "{found}"'
    )


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        (INTEGER, 1, []),
        (INTEGER, 1.0, []),
        (INTEGER, 1.5, [type_error("integer", "number")]),
        (INTEGER, True, [type_error("integer", "boolean")]),
        (INTEGER, "1", [type_error("integer", "string")]),
        (INTEGER, None, [type_error("integer", "null")]),
        ({**INTEGER, "nullable": True}, None, []),
        ({"type": "number"}, 1, []),
        (TEXT, {}, [type_error("string", "object")]),
        ({"type": "array", "items": TEXT}, ["x", 1], [type_error("string", "integer", "a[1]")]),
        (
            {"type": "object", "additionalProperties": TEXT},
            {"b": 1},
            [type_error("string", "integer", "a.b")],
        ),
        (EITHER, 1, []),
        (EITHER, "1", []),
        (EITHER, True, [type_error("integer,string", "boolean")]),
        ({**INTEGER, "format": "int32"}, "x", [type_error("integer", "string")]),
        (
            {**INTEGER, "format": "int32"},
            2**31,
            [schema_error("Checked value must be of type integer with format int32 in a")],
        ),
        ({**INTEGER, "minimum": 2}, 1, invalid("1", "should be greater than or equal to 2")),
        (
            {**INTEGER, "maximum": 2, "exclusiveMaximum": True},
            2,
            invalid("2", "should be less than 2"),
        ),
        (
            {"type": "number", "multipleOf": 0.5},
            0.75,
            invalid("0.75", "should be a multiple of 0.5"),
        ),
        ({**TEXT, "maxLength": 2}, "xxx", ["a: Too long: may not be more than 2 bytes"]),
        ({**TEXT, "minLength": 2}, "x", invalid('"x"', "should be at least 2 chars long")),
        (
            {**TEXT, "pattern": "^x$"},
            "x\n",
            ["a: Invalid value: \"x\\n\": a in body should match '^x$'"],
        ),
        (
            {**TEXT, "format": "date-time"},
            "today",
            invalid('"today"', 'must be of type date-time: "today"'),
        ),
        ({**TEXT, "format": "nobody-knows"}, "x", []),
        (
            {**TEXT, "enum": ["x", "y"]},
            "z",
            ['a: Unsupported value: "z": supported values: "x", "y"'],
        ),
        ({**INTEGER, "enum": [1, 2]}, 3, ['a: Unsupported value: 3: supported values: "1", "2"']),
        (
            {"type": "array", "items": INTEGER, "maxItems": 1},
            [1, 2],
            ["a: Too many: 2: must have at most 1 item"],
        ),
        (
            {"type": "array", "items": INTEGER, "minItems": 1},
            [],
            invalid("0", "should have at least 1 items"),
        ),
        (
            {"type": "object", "minProperties": 1},
            {},
            invalid("0", "should have at least 1 properties"),
        ),
        (
            {"type": "object", "additionalProperties": False},
            {"b": 1},
            ['a: Invalid value: "b": a.b in body is a forbidden property'],
        ),
        ({"type": "object", "required": ["b"]}, {}, ["a.b: Required value"]),
        (
            {**INTEGER, "not": {"enum": [1]}},
            1,
            [schema_error('"a" must not validate the schema (not)')],
        ),
        (
            {**INTEGER, "anyOf": [{"minimum": 5}, {"enum": [1]}]},
            2,
            [
                schema_error('"a" must validate at least one schema (anyOf)'),
                "a: Invalid value: 2: a in body should be greater than or equal to 5",
            ],
        ),
        (
            {**INTEGER, "oneOf": [{"minimum": 1}, {"maximum": 9}]},
            5,
            [
                schema_error(
                    '"a" must validate one and only one schema (oneOf). Found 2 valid alternatives'
                )
            ],
        ),
        (
            {**INTEGER, "allOf": [{"minimum": 5}]},
            1,
            [
                "a: Invalid value: 1: a in body should be greater than or equal to 5",
                schema_error('"a" must validate all the schemas (allOf). None validated'),
            ],
        ),
    ],
)
def test_errors_of_a_value_are_reported(
    schema: dict[str, Any], value: Any, errors: list[str]
) -> None:
    assert errors_of(schema, value) == errors


KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": record(name=TEXT, size={**INTEGER, "maximum": 1}),
}
LISTED = {"type": "array", "items": KEYED["items"]}
BIG = {"name": "big", "size": 5}
SMALL = {"name": "small", "size": 1}


@pytest.mark.parametrize(
    ("schema", "value", "old", "is_refused"),
    [
        ({**INTEGER, "maximum": 1}, 5, 5, False),
        ({**INTEGER, "maximum": 1}, 5, 6, True),
        (KEYED, [SMALL, BIG], [BIG], False),
        (KEYED, [{**BIG, "size": 6}], [BIG], True),
        (LISTED, [SMALL, BIG], [BIG], True),
        (LISTED, [BIG], [BIG], False),
        ({**INTEGER, "enum": [2]}, 1, True, True),
    ],
)
def test_an_unchanged_value_is_not_validated_again(
    schema: dict[str, Any], value: Any, old: Any, *, is_refused: bool
) -> None:
    assert bool(errors_of(schema, value, old)) is is_refused


SET = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}


def list_map(*keys: str) -> dict[str, Any]:
    items = record(**dict.fromkeys(keys, TEXT))
    own = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {"type": "array", "items": items, **own}


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        (SET, ["a", "b"], []),
        (SET, ["a", "b", "a", "a"], ['x[2]: Duplicate value: "a"']),
        (list_map("k"), [{"k": "a"}, {"k": "a"}], ['x[1]: Duplicate value: {"k":"a"}']),
        (list_map("k"), [{}, {}], ["x[1]: Duplicate value: {}"]),
        (list_map("k", "l"), [{"k": "a"}, {"k": "a", "l": "b"}], []),
        (
            list_map("k"),
            ["a"],
            ['x[0]: Invalid value: "a": must be an object for an array of list-type map'],
        ),
    ],
)
def test_duplicates_are_found(schema: dict[str, Any], value: Any, errors: list[str]) -> None:
    check = duplicate_items_check(node_of(record(x=schema)))
    assert check is not None
    assert [f"{c.field}: {c.message}" for c in check({"x": value}, "")] == errors


def test_a_schema_without_sets_and_maps_has_no_check() -> None:
    assert duplicate_items_check(node_of(record(x=TEXT))) is None
