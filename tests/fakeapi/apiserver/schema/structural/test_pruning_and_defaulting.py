"""The fields of an object that are kept, and the defaults."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.schema.structural.pruning_and_defaulting import (
    apply_schema_defaults,
    prune,
    prune_resource,
)
from fakeapi.apiserver.schema.structural.schema_tree import node_of
from tests.builders.definitions import ANYTHING, TEXT, record


@pytest.mark.parametrize(
    ("schema", "value", "left", "unknown"),
    [
        (record(a=TEXT), {"a": "x", "b": 1}, {"a": "x"}, ["b"]),
        (record(a=record(b=TEXT)), {"a": {"c": 1}}, {"a": {}}, ["a.c"]),
        (
            record(a={"type": "array", "items": record(b=TEXT)}),
            {"a": [{"b": "x", "c": 1}]},
            {"a": [{"b": "x"}]},
            ["a[0].c"],
        ),
        (
            {"type": "object", "additionalProperties": record(b=TEXT)},
            {"x": {"c": 1}},
            {"x": {}},
            ["x.c"],
        ),
        ({"type": "object", "additionalProperties": True}, {"x": {"c": 1}}, {"x": {}}, ["x.c"]),
        (ANYTHING, {"x": {"c": 1}}, {"x": {"c": 1}}, []),
        (
            {**ANYTHING, **record(a=record(b=TEXT))},
            {"a": {"c": 1}, "d": 1},
            {"a": {}, "d": 1},
            ["a.c"],
        ),
        (record(a=TEXT), {"a": None}, {}, []),
        (record(a={**TEXT, "nullable": True}), {"a": None}, {"a": None}, []),
    ],
)
def test_unknown_fields_are_pruned(
    schema: dict[str, Any], value: Any, left: Any, unknown: list[str]
) -> None:
    assert prune(node_of(schema), value) == unknown
    assert value == left


def test_kind_and_metadata_need_no_schema() -> None:
    document = {"kind": "A", "apiVersion": "b/v1", "metadata": {"name": "x"}, "other": 1}
    assert prune_resource(node_of(record()), document) == ["other"]
    assert document == {"kind": "A", "apiVersion": "b/v1", "metadata": {"name": "x"}}


DEFAULTED = {**TEXT, "default": "x"}


@pytest.mark.parametrize(
    ("schema", "value", "filled"),
    [
        (record(a=DEFAULTED), {}, {"a": "x"}),
        (record(a=DEFAULTED), {"a": "y"}, {"a": "y"}),
        (record(a=DEFAULTED), {"a": None}, {"a": "x"}),
        (record(a={**DEFAULTED, "nullable": True}), {"a": None}, {"a": None}),
        (record(a=record(b=DEFAULTED)), {}, {}),
        (record(a={**record(b=DEFAULTED), "default": {}}), {}, {"a": {"b": "x"}}),
        (
            record(a={"type": "array", "items": record(b=DEFAULTED)}),
            {"a": [{}]},
            {"a": [{"b": "x"}]},
        ),
        (
            {"type": "object", "additionalProperties": record(b=DEFAULTED)},
            {"k": {}},
            {"k": {"b": "x"}},
        ),
    ],
)
def test_missing_fields_get_defaults(schema: dict[str, Any], value: Any, filled: Any) -> None:
    apply_schema_defaults(node_of(schema), value)
    assert value == filled


def test_a_default_is_not_shared_between_objects() -> None:
    node = node_of(record(a={**record(b=TEXT), "default": {"b": "x"}}))
    one: dict[str, Any] = {}
    apply_schema_defaults(node, one)
    one["a"]["b"] = "y"
    two: dict[str, Any] = {}
    apply_schema_defaults(node, two)
    assert two == {"a": {"b": "x"}}
