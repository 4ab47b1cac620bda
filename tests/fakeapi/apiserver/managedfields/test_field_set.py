"""Sets of fields: operations equal to those of sets of paths, in upstream's notation."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.kinds.structural_types import UNTYPED, ListType
from fakeapi.apiserver.managedfields.field_set import (
    FieldSet,
    contains,
    describe,
    difference,
    intersection,
    item_element,
    ordered,
    parse,
    paths,
    recursive_difference,
    set_of,
    union,
)

elements = st.sampled_from(("f:a", "f:b", 'k:{"name":"x"}', 'k:{"name":"y"}', "v:1", 'v:"z"'))
some_paths = st.sets(st.lists(elements, min_size=1, max_size=3).map(tuple), max_size=6)


@given(some_paths, some_paths)
def test_the_algebra_is_that_of_sets_of_paths(one: set[Any], other: set[Any]) -> None:
    a, b = set_of(*one), set_of(*other)
    assert set(paths(a)) == one
    assert set(paths(union(a, b))) == one | other
    assert set(paths(intersection(a, b))) == one & other
    assert set(paths(difference(a, b))) == one - other
    assert all(contains(a, path) == (path in one) for path in one | other)
    below = {path for path in one if any(path[: len(gone)] == gone for gone in other)}
    assert set(paths(recursive_difference(a, b))) == one - below


@given(some_paths)
def test_a_set_is_read_as_it_is_written(some: set[Any]) -> None:
    fields = set_of(*some)
    written = orjson.dumps(ordered(fields))
    assert parse(orjson.loads(written)) == fields
    assert orjson.dumps(ordered(orjson.loads(written))) == written


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        ({}, "{}"),
        ({"f:b": {}, "f:a": {}}, '{"f:a":{},"f:b":{}}'),
        ({"f:a": {"f:x": {}, ".": {}}}, '{"f:a":{".":{},"f:x":{}}}'),
        ({"v:10": {}, "v:9": {}, "f:z": {}}, '{"f:z":{},"v:9":{},"v:10":{}}'),
        ({"v:true": {}, 'v:"a"': {}, "v:1": {}}, r'{"v:1":{},"v:\"a\"":{},"v:true":{}}'),
        (
            {'k:{"p":443}': {}, 'k:{"p":80}': {}, "i:1": {}},
            r'{"k:{\"p\":80}":{},"k:{\"p\":443}":{},"i:1":{}}',
        ),
    ],
)
def test_elements_are_in_upstreams_order(fields: FieldSet, written: str) -> None:
    assert orjson.dumps(ordered(fields)).decode() == written


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({"f:a": {".": {}}}, {"f:a": {}}),
        ({'k:{"b": 1, "a": 2}': {}}, {'k:{"a":2,"b":1}': {}}),
        ({"x:future": {}, "f:a": {}}, {"f:a": {}}),
        ({'v:"\\u003c"': {}}, {'v:"\\u003c"': {}}),
    ],
)
def test_a_clients_field_set_is_normalized(sent: FieldSet, read: FieldSet) -> None:
    assert parse(sent) == read


@pytest.mark.parametrize("sent", [[], {"f": {}}, {"fa:": {}}, {"k:1": {}}, {"v:": {}}, {"f:a": 1}])
def test_an_invalid_field_set_is_refused(sent: Any) -> None:
    with pytest.raises(ValueError):
        parse(sent)


@pytest.mark.parametrize(
    ("keys", "item", "element"),
    [
        ((), "a", 'v:"a"'),
        ((), "<&>", r'v:"\u003c\u0026\u003e"'),
        ((), 3, "v:3"),
        (("name",), {"name": "a", "x": 1}, 'k:{"name":"a"}'),
        (("port", "protocol"), {"port": 1}, 'k:{"port":1,"protocol":"TCP"}'),
        (("port", "name"), {"port": 1}, 'k:{"port":1}'),
    ],
)
def test_an_item_is_identified_by_its_keys_or_its_value(
    keys: tuple[str, ...], item: Any, element: str
) -> None:
    shape = ListType(UNTYPED, "map", keys, defaults={"protocol": "TCP"})
    assert item_element(shape, item) == element


@pytest.mark.parametrize(
    ("keys", "item"),
    [((), {}), ((), []), ((), None), (("name",), {}), (("name",), None), (("name",), "a")],
)
def test_an_item_without_identity_is_refused(keys: tuple[str, ...], item: Any) -> None:
    with pytest.raises(ValueError, match="associative list"):
        item_element(ListType(UNTYPED, "map", keys), item)


def test_a_path_is_spelled_as_by_kubectl() -> None:
    path = ("f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}', 'v:"x"', "i:2", "f:name")
    assert describe(path) == '.spec.ports[port=80,protocol="TCP"][="x"][2].name'
