"""The merge of an applied configuration into the live document.

Fields of the configuration replace those of the live object; other fields are kept. A granular list
keeps its items; the items of the configuration are in its order, and items that only the live list
has keep their positions between them.

Source: sigs.k8s.io/structured-merge-diff/typed/merge.go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final

from fakeapi.api.managedfields.elements import item_element
from fakeapi.api.managedfields.shapes import field_type, granular_list_type, granular_object_type
from fakeapi.kinds.types import ListType, MapType, Struct, Type


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
    lives = [(item_element(items, value), value) for value in live]
    configs = {item_element(items, value): value for value in config}
    once: dict[str, Any] = {}
    for element, value in lives:
        once[element] = ABSENT if element in once else value
    merged = {
        element: _merge(items.element, once.get(element, ABSENT), value)
        for element, value in configs.items()
    }
    return list(_in_order(lives, merged))


def _in_order(lives: list[tuple[str, Any]], merged: Mapping[str, Any]) -> Iterator[Any]:
    """Return the items that only the live list has, and the merged items, in their final order.

    The merged items are in the configuration's order; an item that only the live list has comes
    after the items that precede it in the live list.
    """
    known = {element for element, _ in lives}
    shared = deque(element for element in merged if element in known)
    own, applied, placed = deque(lives), deque(merged), set[str]()
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
