"""A local copy of one resource, found by key or by index, that tells others what changes in it.

It is the sink of an informer (:mod:`extender.kube.informer`) that several may share. Guarantees:

- Handlers hear of everything, in the server's order, after the copy and its indexes have changed.
- Who joins late is first told of all that is there, as added.
- After a relist only the differences are told: what has gone is removed, what has another version
  is updated. What has not changed is not mentioned.
- An object that was deleted and made anew under its old name is another one: its predecessor is
  removed before it is added, even if the deletion itself was missed.
- A deletion that was missed (it shows only as the difference, or by a successor) leaves a
  tombstone: the last state that was seen here, which need not be the object's last. Handlers that
  care get it apart from other removals (:class:`TombstoneHandler`), all others as one of them.

Iteration is in the order of arrival, so that the same events lead to the same order everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, Protocol, TypeVar, runtime_checkable

from extender.kube.metadata import ObjectMeta


class Thing(Protocol):
    """An object that knows who it is."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its metadata."""
        ...


T = TypeVar("T", bound=Thing)
T_contra = TypeVar("T_contra", bound=Thing, contravariant=True)
IndexBy = Callable[[T], Iterable[str]]


class Handler(Protocol[T_contra]):
    """Who wants to hear of changes; what it raises ends the informer."""

    def added(self, item: T_contra) -> None:
        """There is a new object."""
        ...

    def updated(self, old: T_contra, new: T_contra) -> None:
        """An object has changed."""
        ...

    def removed(self, item: T_contra) -> None:
        """An object has gone; ``item`` is its last known state."""
        ...


@runtime_checkable
class TombstoneHandler(Handler[T_contra], Protocol[T_contra]):
    """A handler that tells removals that were seen from those that were missed."""

    def found_gone(self, item: T_contra) -> None:
        """An object has gone while nobody looked; ``item`` is what was seen of it last."""
        ...


class Indexer(Generic[T]):
    """Objects by ``namespace/name``, and by the values that indexes give for each of them."""

    def __init__(self) -> None:
        self._items: dict[str, T] = {}
        self._index_by: dict[str, IndexBy[T]] = {}
        self._indexed: dict[str, dict[str, dict[str, T]]] = {}
        self._handlers: list[Handler[T]] = []

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: str) -> T | None:
        """Return the object under ``namespace/name`` (or the name alone), or None."""
        return self._items.get(key)

    def values(self) -> Collection[T]:
        """Return all objects, in the order of their arrival."""
        return self._items.values()

    def by(self, index: str, value: str) -> Collection[T]:
        """Return the objects for which an index gives ``value``; KeyError if there is no index."""
        return self._indexed[index].get(value, {}).values()

    def add_index(self, index: str, index_by: IndexBy[T]) -> None:
        """Have objects found by the values that ``index_by`` gives; a known index stays as it is.

        The values of an object must not change as long as the object is the same.
        """
        if index not in self._index_by:
            self._index_by[index], self._indexed[index] = index_by, {}
            for item in self._items.values():
                self._enter(index, item)

    def add_handler(self, handler: Handler[T]) -> None:
        """Tell ``handler`` of everything there is, and from now on of every change."""
        self._handlers.append(handler)
        for item in tuple(self._items.values()):
            handler.added(item)

    def remove_handler(self, handler: Handler[T]) -> None:
        """Tell ``handler`` that everything has gone, and nothing from then on."""
        self._handlers.remove(handler)
        for item in tuple(self._items.values()):
            handler.removed(item)

    def replace(self, items: Sequence[T]) -> None:
        """Take over the whole state."""
        present = {item.metadata.key for item in items}
        for key in [key for key in self._items if key not in present]:
            self._bury(key)
        for item in items:
            self.upsert(item)

    def upsert(self, item: T) -> None:
        """Take over an object that is new or changed."""
        old = self._items.get(item.metadata.key)
        if old is not None and old.metadata.uid != item.metadata.uid:
            self._bury(item.metadata.key)
            old = None
        if old is None:
            self._store(item)
            for handler in self._handlers:
                handler.added(item)
        elif old.metadata.resource_version != item.metadata.resource_version:
            self._forget(old)
            self._store(item)
            for handler in self._handlers:
                handler.updated(old, item)

    def remove(self, item: T) -> None:
        """Drop an object; ``item`` is its last state."""
        present = self._items.get(item.metadata.key)
        if present is not None and present.metadata.uid == item.metadata.uid:
            self._drop(item.metadata.key)
            for handler in self._handlers:
                handler.removed(item)

    def _bury(self, key: str) -> None:
        """Drop an object whose deletion was missed."""
        last = self._drop(key)
        for handler in self._handlers:
            if isinstance(handler, TombstoneHandler):
                handler.found_gone(last)
            else:
                handler.removed(last)

    def _drop(self, key: str) -> T:
        old = self._items.pop(key)
        self._forget(old)
        return old

    def _store(self, item: T) -> None:
        self._items[item.metadata.key] = item
        for index in self._index_by:
            self._enter(index, item)

    def _enter(self, index: str, item: T) -> None:
        for value in self._index_by[index](item):
            self._indexed[index].setdefault(value, {})[item.metadata.key] = item

    def _forget(self, item: T) -> None:
        key = item.metadata.key
        for name, index_by in self._index_by.items():
            for value in index_by(item):
                shelf = self._indexed[name].get(value, {})
                shelf.pop(key, None)
                if not shelf:
                    self._indexed[name].pop(value, None)
