"""The JSON patch between two documents.

Object members are compared one by one; any other value is replaced as a whole. Webhooks add members
and append to lists, so replacing a list is good enough. (The library that applies patches can also
create them, with the fewest operations, but takes thirty times as long: as long as the create
itself.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Operation = Mapping[str, Any]


def create_json_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Operation]:
    """Return the operations that turn ``before`` into ``after``."""
    return list(_changes(before, after, ""))


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Operation]:
    for key, old in before.items():
        place = f"{path}/{_escaped(key)}"
        if key not in after:
            yield {"op": "remove", "path": place}
        elif isinstance(old, dict) and isinstance(after[key], dict) and old is not after[key]:
            yield from _changes(old, after[key], place)
        elif not _is_equal(old, after[key]):
            yield {"op": "replace", "path": place, "value": after[key]}
    for key, new in after.items():
        if key not in before:
            yield {"op": "add", "path": f"{path}/{_escaped(key)}", "value": new}


def _is_equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; true does not equal 1."""
    if one is other:  # true for most parts of a patched pod
        return True
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_equal(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
