"""Dry run: a write without effect (``dryRun=All``).

A DryRunStore replaces the store. It raises the errors and returns the entries that the store would,
but writes nothing: no event, no new version. A returned entry has the present version of the
object; a new object has none.

Source: k8s.io/apiserver/pkg/registry/generic/registry/dryrun.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from fakeapi.kinds import Kind
from fakeapi.store import (
    AlreadyExistsError,
    Document,
    Entry,
    Event,
    MissingError,
    StaleError,
    encode_entry,
)


class Objects(Protocol):
    """The store interface of the registry; for the rules of each method see :class:`Store`."""

    @property
    def version(self) -> int:
        """Return the version of the last write."""
        ...

    def stored(self, kind: Kind) -> Kind:
        """Return the stored kind of a kind."""
        ...

    def get(self, kind: Kind, key: str) -> Entry | None:
        """Return the newest entry at ``key``."""
        ...

    def entries(self, kind: Kind, namespace: str = "", start: str = "") -> Sequence[Entry]:
        """Return the present entries of one namespace or all."""
        ...

    def create(self, kind: Kind, key: str, document: Document) -> Entry:
        """Store a new object."""
        ...

    def update(self, kind: Kind, key: str, document: Document, base: int) -> Entry:
        """Replace the object whose version is ``base``."""
        ...

    def delete(self, kind: Kind, key: str, document: Document, base: int) -> Entry:
        """Remove the object whose version is ``base``."""
        ...


class Timeline(Protocol):
    """The store interface of lists and watches; for the rules of each method see :class:`Store`."""

    @property
    def version(self) -> int:
        """Return the version of the last write."""
        ...

    def entries(self, kind: Kind, namespace: str = "", start: str = "") -> Sequence[Entry]:
        """Return the present entries of one namespace or all."""
        ...

    def entries_at(
        self, kind: Kind, version: int, namespace: str = "", start: str = ""
    ) -> Sequence[Entry]:
        """Return the entries at ``version``."""
        ...

    def since(self, kind: Kind, version: int, limit: int | None = None) -> Sequence[Event]:
        """Return the events after ``version``."""
        ...

    def listen(self, kind: Kind, wake: Callable[[], None]) -> Callable[[], None]:
        """Call ``wake`` after each write of ``kind``, until the returned function is called."""
        ...

    def show(self, kind: Kind, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return entries in the version of a kind."""
        ...


class Rehearsal:
    """A store for dry runs: reads from ``objects``, and writes nothing."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    @property
    def version(self) -> int:
        """Return the version of the last write; dry runs do not count."""
        return self._objects.version

    def stored(self, kind: Kind) -> Kind:
        """Return the stored kind of a kind."""
        return self._objects.stored(kind)

    def get(self, kind: Kind, key: str) -> Entry | None:
        """Return the newest entry at ``key``."""
        return self._objects.get(kind, key)

    def entries(self, kind: Kind, namespace: str = "", start: str = "") -> Sequence[Entry]:
        """Return the present entries of one namespace or all."""
        return self._objects.entries(kind, namespace, start)

    def create(self, kind: Kind, key: str, document: Document) -> Entry:
        """Return the entry that would be stored; raise AlreadyExistsError."""
        if self.get(kind, key) is not None:
            raise AlreadyExistsError(key)
        document["metadata"].pop("resourceVersion", None)
        return encode_entry(kind, key, 0, document)

    def update(self, kind: Kind, key: str, document: Document, base: int) -> Entry:
        """Return the entry that would be stored; raise NotFoundError, ConflictError."""
        present = self.get(kind, key)
        if present is None:
            raise MissingError(key)
        if present.version != base:
            raise StaleError(key)
        document["metadata"]["resourceVersion"] = str(base)
        return encode_entry(kind, key, base, document)

    def delete(self, kind: Kind, key: str, document: Document, base: int) -> Entry:
        """Return the last state of the object; raise NotFoundError, ConflictError."""
        return self.update(kind, key, document, base)
