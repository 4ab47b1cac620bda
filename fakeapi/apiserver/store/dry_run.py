"""Dry run: a write without effect (``dryRun=All``).

A DryRunStore replaces the store. It raises the errors and returns the entries that the store would,
but writes nothing: no event, no new version. A returned entry has the present version of the
object; a new object has none.

Source: k8s.io/apiserver/pkg/registry/generic/registry/dryrun.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.store.object_store import Document, Entry, StoreEvent, encode_entry
from fakeapi.apiserver.store.store_errors import AlreadyExistsError, ConflictError, NotFoundError


class ObjectReader(Protocol):
    """The store interface of the registry; for the rules of each method see :class:`Store`."""

    @property
    def version(self) -> int:
        """Return the version of the last write."""
        ...

    def stored(self, kind: ResourceInfo) -> ResourceInfo:
        """Return the stored kind of a kind."""
        ...

    def get(self, kind: ResourceInfo, key: str) -> Entry | None:
        """Return the newest entry at ``key``."""
        ...

    def entries(self, kind: ResourceInfo, namespace: str = "", start: str = "") -> Sequence[Entry]:
        """Return the present entries of one namespace or all."""
        ...

    def create(self, kind: ResourceInfo, key: str, document: Document) -> Entry:
        """Store a new object."""
        ...

    def update(self, kind: ResourceInfo, key: str, document: Document, base: int) -> Entry:
        """Replace the object whose version is ``base``."""
        ...

    def delete(self, kind: ResourceInfo, key: str, document: Document, base: int) -> Entry:
        """Remove the object whose version is ``base``."""
        ...


class ReadOnlyHistory(Protocol):
    """The store interface of lists and watches; for the rules of each method see :class:`Store`."""

    @property
    def version(self) -> int:
        """Return the version of the last write."""
        ...

    @property
    def oldest_read(self) -> int:
        """Return the version before which lists have expired."""
        ...

    def entries(self, kind: ResourceInfo, namespace: str = "", start: str = "") -> Sequence[Entry]:
        """Return the present entries of one namespace or all."""
        ...

    def entries_at(
        self, kind: ResourceInfo, version: int, namespace: str = "", start: str = ""
    ) -> Sequence[Entry]:
        """Return the entries at ``version``."""
        ...

    def since(
        self, kind: ResourceInfo, version: int, limit: int | None = None
    ) -> Sequence[StoreEvent]:
        """Return the events after ``version``."""
        ...

    def reached(self, kind: ResourceInfo, version: int) -> int:
        """Return where the reader of all events until ``version`` is."""
        ...

    def listen(self, kind: ResourceInfo, wake: Callable[[], None]) -> Callable[[], None]:
        """Call ``wake`` after each write of ``kind``, until the returned function is called."""
        ...

    def convert_entries(self, kind: ResourceInfo, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return entries in the version of a kind."""
        ...


class DryRunStore:
    """A store for dry runs: reads from ``objects``, and writes nothing."""

    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects

    @property
    def version(self) -> int:
        """Return the version of the last write; dry runs do not count."""
        return self._objects.version

    def stored(self, kind: ResourceInfo) -> ResourceInfo:
        """Return the stored kind of a kind."""
        return self._objects.stored(kind)

    def get(self, kind: ResourceInfo, key: str) -> Entry | None:
        """Return the newest entry at ``key``."""
        return self._objects.get(kind, key)

    def entries(self, kind: ResourceInfo, namespace: str = "", start: str = "") -> Sequence[Entry]:
        """Return the present entries of one namespace or all."""
        return self._objects.entries(kind, namespace, start)

    def create(self, kind: ResourceInfo, key: str, document: Document) -> Entry:
        """Return the entry that would be stored; raise AlreadyExistsError."""
        if self.get(kind, key) is not None:
            raise AlreadyExistsError(key)
        document["metadata"].pop("resourceVersion", None)
        return encode_entry(kind, key, 0, document)

    def update(self, kind: ResourceInfo, key: str, document: Document, base: int) -> Entry:
        """Return the entry that would be stored; raise NotFoundError, ConflictError."""
        present = self.get(kind, key)
        if present is None:
            raise NotFoundError(key)
        if present.version != base:
            raise ConflictError(key)
        document["metadata"]["resourceVersion"] = str(base)
        return encode_entry(kind, key, base, document)

    def delete(self, kind: ResourceInfo, key: str, document: Document, base: int) -> Entry:
        """Return the last state of the object; raise NotFoundError, ConflictError."""
        return self.update(kind, key, document, base)
