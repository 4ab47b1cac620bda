"""Lists of type set or map: items of a set and keys of a map must be unique.

Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from fakeapi.api.causes import duplicate, invalid_value
from fakeapi.api.errors import Cause
from fakeapi.api.structural.nodes import SchemaNode

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
    known = {name: duplicate_items_check(below) for name, below in node.properties.items()}
    checks = {name: check for name, check in known.items() if check is not None}
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
