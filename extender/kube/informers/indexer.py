"""The indexer: a local cache of one resource, by key and by index, that notifies event handlers.

It is the store of a reflector (:mod:`extender.kube.informers.reflector`) that controllers may
share. Guarantees:

- Handlers receive every event, in the server's order, after the cache and its indexes have changed.
- A handler that is added later first receives all present objects, as added.
- After a relist, handlers receive the differences only: objects that are gone are removed, objects
  with another version are updated. Unchanged objects cause no event.
- An object that was deleted and recreated under the same name is another object: the old one is
  removed before the new one is added, even if the deletion itself was missed.
- A deletion that was missed (it shows only as the difference, or by a successor) leaves a
  tombstone: the last state that was observed, which need not be the object's last. A
  :class:`TombstoneHandler` receives it separately from other removals, other handlers as a removal.

Iteration is in the order of arrival, so that the same events lead to the same order everywhere.

    pods.add_index(BY_NODE, node_of)
    pods.by(BY_NODE, "node-1")            the pods on that node

An object without a value is not in an index. The objects of an index value are in the order of
arrival, or of the last change that set an object's present version.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, Generic, Protocol, TypeVar, runtime_checkable

from extender.kube.decoders.object_meta import ObjectMeta

BY_NAMESPACE: Final = "namespace"
BY_NODE: Final = "node"


class IndexedObject(Protocol):
    """An object with metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """The object's metadata."""
        ...


T = TypeVar("T", bound=IndexedObject)
T_contra = TypeVar("T_contra", bound=IndexedObject, contravariant=True)
IndexBy = Callable[[T], Iterable[str]]


class ResourceEventHandler(Protocol[T_contra]):
    """Handles changes of objects; an exception that it raises ends the reflector."""

    def added(self, item: T_contra) -> None:
        """Handle a new object."""
        ...

    def updated(self, old: T_contra, new: T_contra) -> None:
        """Handle a changed object."""
        ...

    def removed(self, item: T_contra) -> None:
        """Handle the removal of an object; ``item`` is its last known state."""
        ...


@runtime_checkable
class TombstoneHandler(ResourceEventHandler[T_contra], Protocol[T_contra]):
    """A handler that distinguishes observed removals from missed ones."""

    def removed_tombstone(self, item: T_contra) -> None:
        """Handle a removal that was missed; ``item`` is the last observed state."""
        ...


class Indexer(Generic[T]):
    """Objects by ``namespace/name``, and by the values of the index functions."""

    def __init__(self) -> None:
        self._items: dict[str, T] = {}
        self._index_by: dict[str, IndexBy[T]] = {}
        self._indexed: dict[str, dict[str, dict[str, T]]] = {}
        self._handlers: list[ResourceEventHandler[T]] = []

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: str) -> T | None:
        """Return the object under ``namespace/name`` (or the name alone), or None."""
        return self._items.get(key)

    def values(self) -> Collection[T]:
        """Return all objects, in the order of their arrival."""
        return self._items.values()

    def by(self, index: str, value: str) -> Collection[T]:
        """Return the objects with ``value`` in an index. Raise KeyError if there is no index."""
        return self._indexed[index].get(value, {}).values()

    def add_index(self, index: str, index_by: IndexBy[T]) -> None:
        """Add an index by the values of ``index_by``; an index that exists stays as it is.

        The values of an object must not change as long as the object is the same.
        """
        if index not in self._index_by:
            self._index_by[index], self._indexed[index] = index_by, {}
            for item in self._items.values():
                self._enter(index, item)

    def add_handler(self, handler: ResourceEventHandler[T]) -> None:
        """Add a handler: it receives all present objects as added, then every change."""
        self._handlers.append(handler)
        for item in tuple(self._items.values()):
            handler.added(item)

    def remove_handler(self, handler: ResourceEventHandler[T]) -> None:
        """Remove a handler: it receives all present objects as removed, and then nothing."""
        self._handlers.remove(handler)
        for item in tuple(self._items.values()):
            handler.removed(item)

    def replace(self, items: Sequence[T]) -> None:
        """Replace all objects."""
        present = {item.metadata.key for item in items}
        for key in [key for key in self._items if key not in present]:
            self._remove_missed(key)
        for item in items:
            self.upsert(item)

    def upsert(self, item: T) -> None:
        """Add or update an object."""
        old = self._items.get(item.metadata.key)
        if old is not None and old.metadata.uid != item.metadata.uid:
            self._remove_missed(item.metadata.key)
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
        """Remove an object; ``item`` is its last state."""
        present = self._items.get(item.metadata.key)
        if present is not None and present.metadata.uid == item.metadata.uid:
            self._drop(item.metadata.key)
            for handler in self._handlers:
                handler.removed(item)

    def _remove_missed(self, key: str) -> None:
        """Remove an object whose deletion was missed."""
        last = self._drop(key)
        for handler in self._handlers:
            if isinstance(handler, TombstoneHandler):
                handler.removed_tombstone(last)
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
                items = self._indexed[name].get(value, {})
                items.pop(key, None)
                if not items:
                    self._indexed[name].pop(value, None)


class AssignedPodSpec(Protocol):
    """The field of a pod spec that names its node."""

    @property
    def node_name(self) -> str:
        """The name of the node; "" if the pod has none yet."""
        ...


class AssignedPod(IndexedObject, Protocol):
    """A pod that can be indexed by its node."""

    @property
    def spec(self) -> AssignedPodSpec:
        """The pod's spec."""
        ...


def namespace_of(item: IndexedObject) -> tuple[str, ...]:
    """Return the value of ``BY_NAMESPACE``: the object's namespace; nothing if cluster-scoped."""
    return (item.metadata.namespace,) if item.metadata.namespace else ()


def node_of(pod: AssignedPod) -> tuple[str, ...]:
    """Return the value of ``BY_NODE``: the pod's node, if it has one."""
    return (pod.spec.node_name,) if pod.spec.node_name else ()
