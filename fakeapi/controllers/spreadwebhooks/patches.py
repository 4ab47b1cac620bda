"""The JSON patch that makes one document of another.

Members of objects are told one by one, anything else as a whole: a webhook adds members and makes
lists longer, and a list that is replaced is as good as one that is added to. (The library that
carries patches out can make them, too, with the fewest operations; it needs thirty times as long,
and so as long as the create itself.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Operation = Mapping[str, Any]


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Operation]:
    """Return the operations that make ``after`` of ``before``."""
    return list(_changes(before, after, ""))


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Operation]:
    for key, old in before.items():
        place = f"{path}/{_escaped(key)}"
        if key not in after:
            yield {"op": "remove", "path": place}
        elif isinstance(old, dict) and isinstance(after[key], dict) and old is not after[key]:
            yield from _changes(old, after[key], place)
        elif not _same(old, after[key]):
            yield {"op": "replace", "path": place, "value": after[key]}
    for key, new in after.items():
        if key not in before:
            yield {"op": "add", "path": f"{path}/{_escaped(key)}", "value": new}


def _same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same; true is not 1."""
    if one is other:  # as is most of a pod that something has been added to
        return True
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
