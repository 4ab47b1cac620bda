"""Sets have no twins, maps no equal keys."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.schema.structural.schema_tree import node_of
from fakeapi.apiserver.schema.structural.schema_validator import duplicate_items_check

TEXT = {"type": "string"}
SET = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}


def keyed(*keys: str) -> dict[str, Any]:
    items = {"type": "object", "properties": dict.fromkeys(keys, TEXT)}
    own = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {"type": "array", "items": items, **own}


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        (SET, ["a", "b"], []),
        (SET, ["a", "b", "a", "a"], ['x[2]: Duplicate value: "a"']),
        (keyed("k"), [{"k": "a"}, {"k": "a"}], ['x[1]: Duplicate value: {"k":"a"}']),
        (keyed("k"), [{}, {}], ["x[1]: Duplicate value: {}"]),
        (keyed("k", "l"), [{"k": "a"}, {"k": "a", "l": "b"}], []),
        (
            keyed("k"),
            ["a"],
            ['x[0]: Invalid value: "a": must be an object for an array of list-type map'],
        ),
    ],
)
def test_duplicates_are_found(schema: dict[str, Any], value: Any, errors: list[str]) -> None:
    check = duplicate_items_check(node_of({"type": "object", "properties": {"x": schema}}))
    assert check is not None
    assert [f"{c.field}: {c.message}" for c in check({"x": value}, "")] == errors


def test_a_schema_without_sets_and_maps_has_no_check() -> None:
    assert duplicate_items_check(node_of({"type": "object", "properties": {"x": TEXT}})) is None
