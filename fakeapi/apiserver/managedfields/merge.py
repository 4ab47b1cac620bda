"""The merge of an applied configuration into the live document, and pruning afterwards.

Fields of the configuration replace those of the live object; other fields are kept. A granular list
keeps its items; the items of the configuration are in its order, and items that only the live list
has keep their positions between them. Pruning removes the fields that a manager no longer applies,
unless another manager owns them.

Source: sigs.k8s.io/structured-merge-diff/typed (merge.go, remove.go), merge/update.go (prune).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

from fakeapi.apiserver.kinds.structural_types import ListType, MapType, Struct, Type
from fakeapi.apiserver.managedfields.field_set import (
    EMPTY,
    FieldSet,
    difference,
    field_element,
    intersection,
    is_member,
    item_element,
    union,
)
from fakeapi.apiserver.managedfields.typed_value import (
    GranularObject,
    ensure_named_fields_are_members,
    field_type,
    granular_list_type,
    granular_object_type,
    to_field_set,
)


class _Absent(Enum):
    ABSENT = None


ABSENT: Final = _Absent.ABSENT


def merge(shape: Type, live: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merged document, which shares unchanged values; the configuration is valid."""
    merged = _merge(shape, live, config)
    assert isinstance(merged, dict)
    return merged


def _merge(shape: Type, live: Any, config: Any) -> Any:
    if config is ABSENT:
        return live
    if config is None:
        return live if live is not ABSENT and live and _has_parts(shape) else None
    branch = granular_object_type(shape, config)
    if branch is not None:
        old = live if isinstance(live, dict) else {}
        names = dict.fromkeys((*old, *config))
        parts = {
            name: _merge(field_type(branch, name), old.get(name, ABSENT), config.get(name, ABSENT))
            for name in names
        }
        return {name: part for name, part in parts.items() if part is not ABSENT}
    items = granular_list_type(shape, config)
    if items is None:
        return config
    return _merge_lists(items, live if isinstance(live, list) else [], config)


def _has_parts(shape: Type) -> bool:
    if isinstance(shape, ListType):
        return shape.kind != "atomic"
    return isinstance(shape, Struct | MapType) and not shape.atomic


def _merge_lists(items: ListType, live: list[Any], config: list[Any]) -> list[Any]:
    """Return two lists merged; an item that the live list has twice is replaced, not merged."""
    live_items = [(item_element(items, value), value) for value in live]
    configs = {item_element(items, value): value for value in config}
    once: dict[str, Any] = {}
    for element, value in live_items:
        once[element] = ABSENT if element in once else value
    merged = {
        element: _merge(items.element, once.get(element, ABSENT), value)
        for element, value in configs.items()
    }
    return list(_in_order(live_items, merged))


def _in_order(live_items: list[tuple[str, Any]], merged: Mapping[str, Any]) -> Iterator[Any]:
    """Return the items that only the live list has, and the merged items, in their final order.

    The merged items are in the configuration's order; an item that only the live list has comes
    after the items that precede it in the live list.
    """
    elements = {element for element, _ in live_items}
    shared = deque(element for element in merged if element in elements)
    own, applied, placed = deque(live_items), deque(merged), set[str]()
    while own or applied:
        element, value = own[0] if own else ("", None)
        if own and element not in merged:
            yield value
            own.popleft()
        elif own and applied and element != applied[0] and shared and element != shared[0]:
            own.popleft()  # in both lists, but not the next shared item of the configuration
        elif own and element in placed:
            own.popleft()
        else:
            placed.add(applied[0])
            if shared and shared[0] == applied[0]:
                shared.popleft()
            yield merged[applied.popleft()]


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
