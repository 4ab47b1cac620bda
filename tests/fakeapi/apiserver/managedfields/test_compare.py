"""The fields that a change of a document removed, modified and added."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from fakeapi.apiserver.kinds import BUILTIN
from fakeapi.apiserver.kinds.structural_types import schema_of
from fakeapi.apiserver.managedfields.compare import compare
from fakeapi.apiserver.managedfields.field_set import FieldSet, describe, intersection, paths
from tests.fakeapi.apiserver.managedfields.example_kind import DOCUMENT, specs, thing

SAME: tuple[str, ...] = ()


def spelled(fields: FieldSet) -> tuple[str, ...]:
    return tuple(describe(path).removeprefix(".spec") for path in paths(fields))


@pytest.mark.parametrize(
    ("old", "new", "removed", "modified", "added"),
    [
        ({"size": 1}, {"size": 1}, SAME, SAME, SAME),
        ({"size": 1}, {"size": 2}, SAME, (".size",), SAME),
        ({}, {"size": 2}, SAME, SAME, (".size",)),
        ({"size": 1}, {}, (".size",), SAME, SAME),
        ({}, {"tags": {"a": "1"}}, SAME, SAME, (".tags", ".tags.a")),
        ({"tags": {"a": "1"}}, {"tags": {"b": "1"}}, (".tags.a",), SAME, (".tags.b",)),
        ({"names": ["a", "b"]}, {"names": ["b", "a"]}, SAME, SAME, SAME),
        ({"names": ["a"]}, {"names": ["b"]}, ('.names[="a"]',), SAME, ('.names[="b"]',)),
        ({"order": ["a"]}, {"order": ["b"]}, SAME, (".order",), SAME),
        ({"one": {"a": "x"}}, {"one": {"a": "y"}}, SAME, (".one",), SAME),
        (
            {"items": [{"name": "a", "image": "x"}]},
            {"items": [{"name": "a", "image": "y"}]},
            SAME,
            ('.items[name="a",protocol="TCP"].image',),
            SAME,
        ),
        (
            {"items": [{"name": "a"}]},
            {"items": [{"name": "a"}, {"name": "a", "protocol": "UDP"}]},
            SAME,
            SAME,
            (
                '.items[name="a",protocol="UDP"]',
                '.items[name="a",protocol="UDP"].name',
                '.items[name="a",protocol="UDP"].protocol',
            ),
        ),
        ({"free": {"a": 1}}, {"free": {"a": 2}}, SAME, (".free.a",), SAME),
        ({"free": [{"a": 1}]}, {"free": [{"a": 2}]}, SAME, (".free",), SAME),
        ({"free": {"a": 1}}, {"free": 1}, (".free.a",), (".free",), SAME),
    ],
)
def test_a_change_is_found(old: Any, new: Any, removed: Any, modified: Any, added: Any) -> None:
    found = compare(DOCUMENT, thing({"inner": {}, **old}), thing({"inner": {}, **new}))
    assert spelled(found.removed) == removed
    assert spelled(found.modified) == modified
    assert spelled(found.added) == added


@given(specs, specs)
def test_the_sets_are_disjoint_and_inverse_for_the_inverse_change(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    there, back = (compare(DOCUMENT, thing(a), thing(b)) for a, b in ((old, new), (new, old)))
    assert not intersection(there.removed, there.changed)
    assert not intersection(there.modified, there.added)
    assert there.removed == back.added
    assert there.modified == back.modified
    assert not compare(DOCUMENT, thing(old), thing(old)).changed


def test_items_that_bear_the_same_key_are_compared_together() -> None:
    once, twice = [{"name": "a"}], [{"name": "a"}, {"name": "a", "image": "x"}]
    more = compare(DOCUMENT, thing({"items": once}), thing({"items": twice}))
    assert spelled(more.added) == ('.items[name="a",protocol="TCP"]',)
    assert spelled(more.removed) == (
        '.items[name="a",protocol="TCP"]',
        '.items[name="a",protocol="TCP"].name',
    )
    same = compare(DOCUMENT, thing({"items": twice}), thing({"items": list(twice)}))
    assert not same.changed
    assert not same.removed


def test_struct_valued_fields_have_no_owner() -> None:
    kind = BUILTIN.of("apps/v1", "Deployment")
    assert kind is not None
    new = {"spec": {"strategy": {"type": "Recreate"}, "selector": {"matchLabels": {"a": "b"}}}}
    found = compare(schema_of(kind), {}, new)
    assert [describe(path) for path in paths(found.added)] == [
        ".spec.selector",
        ".spec.strategy.type",
    ]
