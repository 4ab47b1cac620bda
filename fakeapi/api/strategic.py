"""Strategic merge patch: a merge patch that knows how the elements of lists are told apart.

Maps merge as in a JSON merge patch. A list with a merge key (``containers`` by ``name``) merges
element by element: a patch element changes the one with the same key, or is appended. A list of
scalars marked as a set is united. Any other list is replaced. Directives inside the patch:

- ``$patch: replace`` in a map: this map replaces instead of merging; in an element of a merged
  list: the patch's other elements replace the whole list;
- ``$patch: delete``: the map, or the element with this key, goes;
- ``$deleteFromPrimitiveList/NAME: […]``: these values go from the set ``NAME``;
- ``$setElementOrder/NAME: […]``: the order of the list afterwards; elements it does not name (they
  are not this client's) come last, in the order they had;
- ``$retainKeys: […]``: of the map's keys only these stay (the others of a union go).

Which lists have keys is data of the kind (:mod:`fakeapi.kinds`).

Source: k8s.io/apimachinery/pkg/util/strategicpatch/patch.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from fakeapi.api.errors import bad_request
from fakeapi.kinds import Kind
from fakeapi.kinds.kind import Path

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"


def strategic_merge(
    kind: Kind, document: Mapping[str, Any], patch: Mapping[str, Any]
) -> dict[str, Any]:
    """Give ``document`` with ``patch`` merged in; raises StatusError (400) if it is malformed."""
    return _merge_map(kind, (), document, patch)


def _merge_map(
    kind: Kind, path: Path, target: Mapping[str, Any], patch: Mapping[str, Any]
) -> dict[str, Any]:
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    if directive is not None and directive != "merge":
        raise bad_request(f"unknown patch directive: {directive!r}")
    merged = _retain(dict(target), patch.get(_RETAIN))
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_key(kind, (*path, key), merged, value)
    for key, value in patch.items():
        _apply_list_directive(kind, path, merged, key, value)
    return merged


def _merge_key(kind: Kind, path: Path, merged: dict[str, Any], value: Any) -> None:
    key = path[-1]
    present = merged.get(key)
    if value is None:
        merged.pop(key, None)
    elif isinstance(value, dict):
        merged[key] = _merge_map(kind, path, present if isinstance(present, dict) else {}, value)
    elif not isinstance(value, list):
        merged[key] = value
    elif path in kind.merge_keys:
        merged[key] = _merge_list(kind, path, _list(present), value)
    elif path in kind.merge_sets:
        merged[key] = _unite(_list(present), value)
    else:
        merged[key] = value


def _merge_list(kind: Kind, path: Path, target: list[Any], patch: list[Any]) -> list[Any]:
    key = kind.merge_keys[path]
    elements = [_element(key, element) for element in patch]
    if any(element.get(_PATCH) == "replace" for element in elements):
        return [element for element in elements if _PATCH not in element]
    merged = _by_key(key, target)
    for element in elements:
        identity = _identity(key, element)
        if element.get(_PATCH) == "delete":
            merged.pop(identity, None)
        else:
            present = merged.get(identity)
            base = present if isinstance(present, dict) else {}
            merged[identity] = _merge_map(kind, path, base, element)
    return list(merged.values())


def _element(key: str, element: Any) -> Mapping[str, Any]:
    """Check that an element of a merged list bears its key."""
    if not isinstance(element, dict):
        raise bad_request(f"error decoding patch: expected an object with merge key {key!r}")
    if key not in element and element.get(_PATCH) != "replace":
        raise bad_request(f"map: {element} does not contain declared merge key: {key}")
    return element


def _apply_list_directive(
    kind: Kind, path: Path, merged: dict[str, Any], directive: str, value: Any
) -> None:
    for prefix, change in ((_DELETE, _without), (_ORDER, _reorder)):
        if directive.startswith(prefix):
            name = directive.removeprefix(prefix)
            if not isinstance(value, list):
                raise bad_request(f"error decoding patch: {directive} must be a list")
            if isinstance(merged.get(name), list):
                merged[name] = change(kind.merge_keys.get((*path, name), ""), merged[name], value)


def _without(_key: str, present: list[Any], values: list[Any]) -> list[Any]:
    gone = {_identity("", value) for value in values}
    return [element for element in present if _identity("", element) not in gone]


def _reorder(key: str, present: list[Any], order: list[Any]) -> list[Any]:
    rank = {_identity(key, element): index for index, element in enumerate(order)}
    last = len(rank) + len(order)
    return sorted(present, key=lambda element: rank.get(_identity(key, element), last))


def _by_key(key: str, elements: list[Any]) -> dict[bytes, Any]:
    """Index elements by their merge key; of several with one key, only the first can be found."""
    found: dict[bytes, Any] = {}
    for index, element in enumerate(elements):
        identity = _identity(key, element)
        found[b"#%d" % index if identity in found else identity] = element
    return found


def _identity(key: str, element: Any) -> bytes:
    """Give what tells elements apart, hashable (so that long lists merge in linear time)."""
    keyed = key and isinstance(element, dict) and key in element
    return orjson.dumps(element[key] if keyed else element)


def _retain(target: dict[str, Any], keys: Any) -> dict[str, Any]:
    if keys is None:
        return target
    if not isinstance(keys, list):
        raise bad_request(f"error decoding patch: {_RETAIN} must be a list")
    return {key: value for key, value in target.items() if key in keys}


def _unite(present: list[Any], values: Iterable[Any]) -> list[Any]:
    united = {_identity("", value): value for value in present}
    for value in values:
        united.setdefault(_identity("", value), value)
    return list(united.values())


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
