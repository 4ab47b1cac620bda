"""JSONPath, as printer columns use it."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.apiserver.printers.json_path import JsonPathError, compile_path

THING: dict[str, Any] = {
    "metadata": {"labels": {"a.b/c": "x"}},
    "items": [
        {"name": "one", "size": 1, "ready": True},
        {"name": "two", "size": 2, "ready": False},
        {"name": "three", "size": 3, "below": {"name": "four"}},
    ],
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".items[0].name", ["one"]),
        (".items[-1].name", ["three"]),
        (".items[7].name", []),
        (".items[0:2].name", ["one", "two"]),
        (".items[1:].name", ["two", "three"]),
        (".items[::2].name", ["one", "three"]),
        (".items[::0].name", []),
        (".items[*].name", ["one", "two", "three"]),
        (r".metadata.labels.a\.b/c", ["x"]),
        (".metadata.labels['a.b/c']", ["x"]),
        ('.items[?(@.name=="two")].size', [2]),
        (".items[?(@.size>1)].name", ["two", "three"]),
        (".items[?(@.ready==true)].name", ["one"]),
        (".items[?(@.below)].size", [3]),
        (".items[0]['name','size']", ["one", 1]),
        ("..name", ["one", "two", "three", "four"]),
        (".nothing.there", []),
        (".items.name", []),
    ],
)
def test_a_path_finds_all_matching_values(path: str, found: list[Any]) -> None:
    assert compile_path(path)(THING) == found


@pytest.mark.parametrize(
    "path",
    [
        *(".items[", ".items[?(@.a", "items[x]", ".a[1:2:3:4]"),
        *(f".a[{'9' * 5000}]", f".a[{'9' * 5000}:]", f".a[?(@.x == {'9' * 5000})]"),
    ],
)
def test_an_invalid_path_is_refused(path: str) -> None:
    with pytest.raises(JsonPathError):
        compile_path(path)
