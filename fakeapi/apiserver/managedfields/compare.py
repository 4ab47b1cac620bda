"""Comparison of documents: the fields that a change removes, modifies and adds.

Atomic values are compared as a whole; granular objects and lists are compared item by item. If an
item is new, it and all fields below it are added. Equal items are skipped, so the cost depends on
the change, not on the document.

    {"labels": {"a": "1"}}  →  {"labels": {"a": "2", "b": "3"}}     modified .labels.a
                                                                    added    .labels.b

Source: sigs.k8s.io/structured-merge-diff/typed/compare.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fakeapi.apiserver.kinds.structural_types import ListType, Type
from fakeapi.apiserver.managedfields.field_set import (
    EMPTY,
    LEAF,
    SELF,
    FieldSet,
    field_element,
    item_element,
    union,
)
from fakeapi.apiserver.managedfields.typed_value import (
    GranularObject,
    field_type,
    granular_list_type,
    granular_object_type,
    implicit_fields,
)


@dataclass(frozen=True, slots=True)
class FieldSetComparison:
    """The removed, modified and added fields of a document; no field is in two of the sets."""

    removed: FieldSet = field(default_factory=lambda: EMPTY)
    modified: FieldSet = field(default_factory=lambda: EMPTY)
    added: FieldSet = field(default_factory=lambda: EMPTY)

    @property
    def changed(self) -> FieldSet:
        """The fields that have a new value."""
        return union(self.modified, self.added)

    def filtered(self, keep: Callable[[FieldSet], FieldSet]) -> FieldSetComparison:
        """Return the comparison of the fields that a function keeps."""
        return FieldSetComparison(keep(self.removed), keep(self.modified), keep(self.added))


_SAME: Final = FieldSetComparison()
_Found = tuple["FieldSet | None", "FieldSet | None", "FieldSet | None"]
_NOTHING: Final[_Found] = (None, None, None)
_MODIFIED: Final[_Found] = (None, LEAF, None)
_NONE: Final[Mapping[str, Any]] = {}


def compare(shape: Type, old: Mapping[str, Any], new: Mapping[str, Any]) -> FieldSetComparison:
    """Return the comparison of two documents of one type."""
    removed, modified, added = _compare(shape, old, new)
    return FieldSetComparison(removed or EMPTY, modified or EMPTY, added or EMPTY)


def whole_field_set(shape: Type, value: Any) -> FieldSet:
    """Return the node of a value with all fields below it."""
    scalar = not isinstance(value, dict | list)
    if scalar:
        return LEAF
    branch = granular_object_type(shape, value)
    if branch is not None:
        parts = _parts(branch, value)
        node = {field_element(name): LEAF for name in implicit_fields(branch).times}
        node |= {
            field_element(k): whole_field_set(field_type(branch, k), v) for k, v in parts.items()
        }
        return {SELF: LEAF, **node} if node else LEAF
    items = granular_list_type(shape, value)
    if items is None or not value:
        return LEAF
    return {
        SELF: LEAF,
        **{e: _item_node(items, found) for e, found in _by_element(items, value).items()},
    }


def _item_node(items: ListType, found: list[Any]) -> FieldSet:
    """Return the node of a list's item; items with the same key have one owner as a whole."""
    return whole_field_set(items.element, found[0]) if len(found) == 1 else LEAF


def _compare(shape: Type, old: Any, new: Any) -> _Found:
    if old == new:
        return _NOTHING
    if old is None or new is None:
        return _compare_null(shape, old, new)
    branch, other = granular_object_type(shape, new), granular_object_type(shape, old)
    if branch is not None and other is not None:
        return _compare_objects(branch, old, new)
    items = granular_list_type(shape, new)
    if items is not None and isinstance(old, list):
        return _compare_lists(items, old, new)
    if branch is None and other is None:
        return _MODIFIED
    return _replaced(shape, old, new)


def _compare_null(shape: Type, old: Any, new: Any) -> _Found:
    """Compare a value with a null, which is a field, too, but has no fields below it."""
    other = new if old is None else old
    parts = _parts_of(whole_field_set(shape, other))
    if parts is None or (
        granular_object_type(shape, other) is None and granular_list_type(shape, other) is None
    ):
        return _MODIFIED
    return (None, None, parts) if old is None else (parts, None, None)


def _replaced(shape: Type, old: Any, new: Any) -> _Found:
    """Compare an untyped object with a value that is not an object."""
    removed, added = whole_field_set(shape, old), whole_field_set(shape, new)
    return _parts_of(removed), LEAF, _parts_of(added)


def _parts_of(node: FieldSet) -> FieldSet | None:
    return {key: part for key, part in node.items() if key != SELF} or None


def _compare_objects(branch: GranularObject, old: Any, new: Any) -> _Found:
    nodes = _ComparisonNodes()
    olds, news = _parts(branch, old), _parts(branch, new)
    for name, value in news.items():
        element, shape = field_element(name), field_type(branch, name)
        if name in olds:
            nodes.put(element, _compare(shape, olds[name], value))
        elif not (value is None or (not value and name in implicit_fields(branch).zeros)):
            nodes.added[element] = whole_field_set(shape, value)
    for name in olds.keys() - news.keys():
        if olds[name] is not None:
            nodes.removed[field_element(name)] = whole_field_set(
                field_type(branch, name), olds[name]
            )
    if implicit_fields(branch).nulls:
        nodes.drop_own_paths([field_element(name) for name in implicit_fields(branch).nulls])
    return nodes.found()


def _compare_lists(items: ListType, old: list[Any], new: list[Any]) -> _Found:
    nodes = _ComparisonNodes()
    olds, news = _by_element(items, old), _by_element(items, new)
    for element, found in news.items():
        before = olds.get(element, [])
        if len(before) == len(found) == 1:
            nodes.put(element, _compare(items.element, before[0], found[0]))
        elif not before:
            nodes.added[element] = _item_node(items, found)
        elif len(before) > 1 and len(found) > 1:
            nodes.put(element, _NOTHING if before == found else _MODIFIED)
        elif len(found) == 1:
            nodes.removed[element], nodes.added[element] = (
                LEAF,
                whole_field_set(items.element, found[0]),
            )
        else:
            nodes.removed[element] = whole_field_set(items.element, before[0])
            nodes.added[element] = LEAF
    for element in olds.keys() - news.keys():
        nodes.removed[element] = _item_node(items, olds[element])
    return nodes.found()


class _ComparisonNodes:
    """The children of one node in each of the three sets of a comparison."""

    def __init__(self) -> None:
        self.removed: FieldSet = {}
        self.modified: FieldSet = {}
        self.added: FieldSet = {}

    def put(self, element: str, found: _Found) -> None:
        for nodes, node in zip((self.removed, self.modified, self.added), found, strict=True):
            if node is not None:
                nodes[element] = node

    def drop_own_paths(self, elements: list[str]) -> None:
        """Remove the path itself of lists that are null if they are unset; only items change."""
        for nodes in (self.removed, self.added):
            for element in elements:
                if SELF in nodes.get(element, EMPTY):
                    nodes[element] = {k: v for k, v in nodes[element].items() if k != SELF}

    def found(self) -> _Found:
        return self.removed or None, self.modified or None, self.added or None


def _parts(branch: GranularObject, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of an object by name, with structs by value that are not set."""
    by_value = implicit_fields(branch).by_value
    missing = {name: _NONE for name in by_value if value.get(name) is None}
    return {**value, **missing} if missing else value


def _by_element(items: ListType, values: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for element, value in _elements(items, values):
        found.setdefault(element, []).append(value)
    return found


def _elements(items: ListType, values: list[Any]) -> Iterator[tuple[str, Any]]:
    """Return the items with their path elements; items without an element have no owner."""
    for value in values:
        try:
            yield item_element(items, value), value
        except ValueError:
            continue
