"""Pruning: fields that a manager no longer applies are removed, unless another manager owns them.

Source: sigs.k8s.io/structured-merge-diff/merge/update.go (prune), typed/remove.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fakeapi.api.managedfields.elements import field_element, item_element
from fakeapi.api.managedfields.extracting import ensure_named_fields_are_members, to_field_set
from fakeapi.api.managedfields.fieldsets import (
    EMPTY,
    FieldSet,
    difference,
    intersection,
    is_member,
    union,
)
from fakeapi.api.managedfields.shapes import (
    GranularObject,
    field_type,
    granular_list_type,
    granular_object_type,
)
from fakeapi.kinds.types import ListType, Type


def prune(
    shape: Type, merged: dict[str, Any], last: FieldSet, owned: Iterable[FieldSet]
) -> dict[str, Any]:
    """Return the merged document without the fields that are only in ``last``.

    ``last`` is the field set that the manager applied the last time; ``owned`` are the current sets
    of all managers, including the one that this manager applies now.
    """
    if not last:
        return merged
    all_owned = EMPTY
    for fields in owned:
        all_owned = union(all_owned, fields)
    before = ensure_named_fields_are_members(shape, last)
    present = ensure_named_fields_are_members(shape, to_field_set(shape, merged))
    kept = _fields(shape, remove(shape, merged, before))
    lost = difference(present, union(kept, ensure_named_fields_are_members(shape, all_owned)))
    kept = _fields(shape, remove(shape, merged, lost))
    return remove(shape, merged, intersection(difference(present, kept), before))


def _fields(shape: Type, document: Mapping[str, Any]) -> FieldSet:
    return ensure_named_fields_are_members(shape, to_field_set(shape, document))


def remove(shape: Type, document: dict[str, Any], fields: FieldSet) -> dict[str, Any]:
    """Return the document without some fields; atomic values are removed or kept as a whole.

    An object or a list that is not removed itself, but has no items left, becomes null.
    """
    if not fields:
        return document
    branch = granular_object_type(shape, document)
    assert branch is not None
    return _from_object(branch, document, fields) or {}


def without_nulls(value: Any) -> Any:
    """Return a value without the nulls in its objects, at any depth."""
    if isinstance(value, dict):
        return {name: without_nulls(part) for name, part in value.items() if part is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def _remove(shape: Type, value: Any, fields: FieldSet) -> Any:
    """Return the rest of a value; None if nothing is left."""
    branch = granular_object_type(shape, value)
    if branch is not None:
        return _from_object(branch, value, fields)
    items = granular_list_type(shape, value)
    if items is not None:
        return _from_list(items, value, fields)
    return None if isinstance(value, dict | list) else value


def _from_object(
    branch: GranularObject, value: Mapping[str, Any], fields: FieldSet
) -> dict[str, Any] | None:
    left: dict[str, Any] = {}
    for name, part in value.items():
        node = fields.get(field_element(name))
        if node is None:
            left[name] = part
        elif not is_member(node):
            left[name] = _remove(field_type(branch, name), part, node)
    return left or None


def _from_list(items: ListType, values: list[Any], fields: FieldSet) -> list[Any] | None:
    left = []
    for value in values:
        node = fields.get(item_element(items, value))
        if node is None:
            left.append(value)
        elif not is_member(node) and (found := _remove(items.element, value, node)) is not None:
            left.append(found)
    return left or None
