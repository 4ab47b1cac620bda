"""Immutable mappings that share their entries with the mappings that they were made from.

A snapshot has thousands of nodes and differs from the last one in a few. A new mapping has the
entries that were replaced apart from the others, so it costs the same at any size as long as these
are few. Unlike in a persistent hash map, the entries keep the order of their keys.
"""

from __future__ import annotations

from collections.abc import Collection, ItemsView, Iterator, Mapping, ValuesView
from typing import TypeVar

V = TypeVar("V")


class SharedMapping(Mapping[str, V]):
    """The entries of ``shared``, those of ``replaced`` in place of others with the same keys.

    The keys of ``replaced`` are among those of ``shared``, and neither mapping changes.
    """

    __slots__ = ("replaced", "shared")

    def __init__(self, shared: Mapping[str, V], replaced: Mapping[str, V]) -> None:
        self.shared = shared
        self.replaced = replaced

    def __getitem__(self, key: str) -> V:
        return self.replaced[key] if key in self.replaced else self.shared[key]

    def __contains__(self, key: object) -> bool:
        return key in self.shared

    def __iter__(self) -> Iterator[str]:
        return iter(self.shared)

    def __len__(self) -> int:
        return len(self.shared)

    def items(self) -> ItemsView[str, V]:
        """Return the entries in the order of their keys; faster than to look up each of them."""
        return {**self.shared, **self.replaced}.items()

    def values(self) -> ValuesView[V]:
        """Return the values in the order of their keys; faster than to look up each of them."""
        return {**self.shared, **self.replaced}.values()


def with_entries(mapping: Mapping[str, V], entries: Mapping[str, V]) -> SharedMapping[V]:
    """Return an immutable ``mapping`` with some entries replaced or added.

    All entries are copied only if there are new keys.
    """
    shared, replaced = mapping, entries
    if isinstance(mapping, SharedMapping):
        shared, replaced = mapping.shared, {**mapping.replaced, **entries}
    if shared.keys() >= entries.keys():
        return SharedMapping(shared, replaced)
    return SharedMapping({**shared, **replaced}, {})


def replaced_keys(one: Mapping[str, V], other: Mapping[str, V]) -> Collection[str] | None:
    """Return the keys that are replaced in one of two mappings that share their other entries.

    Return None if they do not share them.
    """
    (shared, replaced), (others, also_replaced) = map(_parts, (one, other))
    return replaced.keys() | also_replaced.keys() if shared is others else None


def _parts(mapping: Mapping[str, V]) -> tuple[Mapping[str, V], Mapping[str, V]]:
    if isinstance(mapping, SharedMapping):
        return mapping.shared, mapping.replaced
    return mapping, {}
