"""Strategic merge patch: a merge patch that merges lists by the merge key of their elements.

Maps merge as in a JSON merge patch. A list with a merge key (``containers`` by ``name``) merges
element by element: a patch element changes the one with the same key, or is appended. A list of
scalars that is a set is united. Any other list is replaced. Directives in the patch:

- ``$patch: replace`` in a map: this map replaces instead of merging; in an element of a merged
  list: the patch's other elements replace the whole list;
- ``$patch: delete``: the map, or the element with this key, is deleted;
- ``$deleteFromPrimitiveList/NAME: […]``: these values are deleted from the set ``NAME``;
- ``$setElementOrder/NAME: […]``: the order of the list afterwards;
- ``$retainKeys: […]``: all other keys of the map are deleted (the others of a union).

Elements that the patch names are in the patch's order. The others keep their order, each before the
first named one that it preceded.

A :class:`PatchSchema` has the merge keys of lists; fields outside of it merge as in a JSON merge
patch.

Source: k8s.io/apimachinery/pkg/util/strategicpatch/patch.go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

S = TypeVar("S")

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"


class PatchError(ValueError):
    """A patch is malformed; the text has the expected value."""


class PatchSchema(Protocol[S]):
    """The schema of documents, as far as it determines how they merge."""

    def child(self, shape: S, key: str) -> S:
        """Return the schema of a field of an object."""
        ...

    def element(self, shape: S) -> S:
        """Return the schema of a list's elements."""
        ...

    def merge_key(self, shape: S) -> str | None:
        """Return the merge key of a list: a field, "" for scalars; None if it has none."""
        ...

    def replaces(self, shape: S, key: str) -> bool:
        """Return whether a field's object is replaced instead of merged."""
        ...


def strategic_merge(
    schema: PatchSchema[S], shape: S, document: Mapping[str, Any], patch: Mapping[str, Any]
) -> dict[str, Any]:
    """Return ``document`` with ``patch`` merged in; both stay unchanged.

    Unchanged values are shared with the result. Raise PatchError.
    """
    return _Merge(schema).map(shape, document, patch)


class _Merge(Generic[S]):
    """A merge under one schema."""

    def __init__(self, schema: PatchSchema[S]) -> None:
        self._schema = schema

    def map(self, shape: S, target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
        """Merge a map of the patch into one of the document."""
        directive = patch.get(_PATCH)
        if directive == "replace":
            return {key: value for key, value in patch.items() if key != _PATCH}
        if directive == "delete":
            return {}
        if directive is not None and directive != "merge":
            raise PatchError(f"unknown patch directive: {directive!r}")
        merged = _retain(dict(target), patch.get(_RETAIN))
        for key, value in patch.items():
            if not key.startswith("$"):
                self._key(shape, key, merged, value)
        for key, value in patch.items():
            if key.startswith("$"):
                self._list_directive(shape, merged, key, value, target)
        return merged

    def _key(self, shape: S, key: str, merged: dict[str, Any], value: Any) -> None:
        present = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            self._object(shape, key, merged, value)
        elif not isinstance(value, list):
            merged[key] = value
        else:
            below = self._schema.child(shape, key)
            merge_key = self._schema.merge_key(below)
            if merge_key is None:
                merged[key] = value
            elif merge_key:
                element = self._schema.element(below)
                merged[key] = (
                    self._list(merge_key, element, present, value)
                    if isinstance(present, list)
                    else self._new_list(element, value)
                )
            else:
                merged[key] = _union(_list(present), value)

    def _object(self, shape: S, key: str, merged: dict[str, Any], value: Mapping[str, Any]) -> None:
        if self._schema.replaces(shape, key):
            merged[key] = value
            return
        present = merged.get(key)
        base = present if isinstance(present, dict) else {}
        merged[key] = self.map(self._schema.child(shape, key), base, value)

    def _new_list(self, shape: S, patch: list[Any]) -> list[Any]:
        """Return a list for an absent field: nothing merges, not even elements of the same key."""
        return [
            self.map(shape, {}, element) if isinstance(element, dict) else element
            for element in patch
            if not (isinstance(element, dict) and _PATCH in element)
        ]

    def _list(self, key: str, shape: S, target: list[Any], patch: list[Any]) -> list[Any]:
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
                merged[identity] = self.map(shape, base, element)
        return _arrange(key, list(merged.values()), elements, target)

    def _list_directive(
        self,
        shape: S,
        merged: dict[str, Any],
        directive: str,
        value: Any,
        before: Mapping[str, Any],
    ) -> None:
        for prefix in (_DELETE, _ORDER):
            if directive.startswith(prefix):
                name = directive.removeprefix(prefix)
                if not isinstance(value, list):
                    raise PatchError(f"error decoding patch: {directive} must be a list")
                if not isinstance(merged.get(name), list):
                    continue
                if prefix == _DELETE:
                    merged[name] = _without(merged[name], value)
                else:
                    key = self._schema.merge_key(self._schema.child(shape, name)) or ""
                    merged[name] = _arrange(key, merged[name], value, _list(before.get(name)))


def _element(key: str, element: Any) -> Mapping[str, Any]:
    """Check that an element of a merged list has the merge key."""
    if not isinstance(element, dict):
        raise PatchError(f"error decoding patch: expected an object with merge key {key!r}")
    if key not in element and element.get(_PATCH) != "replace":
        raise PatchError(f"map: {_go_format(element)} does not contain declared merge key: {key}")
    return element


def _without(present: list[Any], values: list[Any]) -> list[Any]:
    removed = {_identity("", value) for value in values}
    return [element for element in present if _identity("", element) not in removed]


def _arrange(
    key: str, present: list[Any], named: Sequence[Any], before: Sequence[Any]
) -> list[Any]:
    """Order the named elements as the patch does, and the others as they were in ``before``."""
    ranks, old_ranks = _ranks(key, named), _ranks(key, before)
    identified = [(_identity(key, element), element) for element in present]
    ordered = sorted((e for e in identified if e[0] in ranks), key=lambda e: ranks[e[0]])
    arranged, rest = [], deque(e for e in identified if e[0] not in ranks)
    for identity, element in ordered:
        while rest and _preceded(old_ranks, rest[0][0], identity):
            arranged.append(rest.popleft()[1])
        arranged.append(element)
    return arranged + [element for _, element in rest]


def _ranks(key: str, elements: Sequence[Any]) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for rank, element in enumerate(elements):
        ranks.setdefault(_identity(key, element), rank)
    return ranks


def _preceded(ranks: Mapping[bytes, int], one: bytes, other: bytes) -> bool:
    return one in ranks and other in ranks and ranks[one] < ranks[other]


def _by_key(key: str, elements: list[Any]) -> dict[bytes, Any]:
    """Index elements by merge key; of several with one key, only the first can be found."""
    found: dict[bytes, Any] = {}
    for index, element in enumerate(elements):
        identity = _identity(key, element)
        found[b"#%d" % index if identity in found else identity] = element
    return found


def _identity(key: str, element: Any) -> bytes:
    """Return an element's identity as bytes, hashable so that long lists merge in linear time."""
    keyed = key and isinstance(element, dict) and key in element
    return msgspec.json.encode(element[key] if keyed else element)


def _retain(target: dict[str, Any], keys: Any) -> dict[str, Any]:
    if keys is None:
        return target
    if not isinstance(keys, list):
        raise PatchError(f"error decoding patch: {_RETAIN} must be a list")
    return {key: value for key, value in target.items() if key in keys}


def _union(present: list[Any], values: list[Any]) -> list[Any]:
    united = {_identity("", value): value for value in present}
    for value in values:
        united.setdefault(_identity("", value), value)
    return _arrange("", list(united.values()), values, present)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _go_format(value: Any) -> str:
    """Format a value as Go's %v does, which upstream's messages do."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_go_format(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go_format, value))}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)
