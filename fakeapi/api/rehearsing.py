"""Rehearsing: a write carried out on paper (``dryRun=All``).

A rehearsal stands in for the store. It refuses what the store would refuse and gives the entries
that the store would give, but writes nothing: no event, no version is used. What it gives bears the
version of the object as it stands; an object that would be new bears none.

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
    """What the registry needs of a store; for each method's rules see :class:`Store`."""

    @property
    def version(self) -> int:
        """The number of the last write."""
        ...

    def stored(self, kind: Kind) -> Kind:
        """Return the kind in which objects of a kind are stored."""
        ...

    def get(self, kind: Kind, key: str) -> Entry | None:
        """Return the newest entry under ``key``."""
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
    """What lists and watches need of a store; for each method's rules see :class:`Store`."""

    @property
    def version(self) -> int:
        """The number of the last write."""
        ...

    def entries(self, kind: Kind, namespace: str = "", start: str = "") -> Sequence[Entry]:
        """Return the present entries of one namespace or all."""
        ...

    def entries_at(
        self, kind: Kind, version: int, namespace: str = "", start: str = ""
    ) -> Sequence[Entry]:
        """Return the entries as they were at ``version``."""
        ...

    def since(self, kind: Kind, version: int, limit: int | None = None) -> Sequence[Event]:
        """Return the events after ``version``."""
        ...

    def listen(self, kind: Kind, wake: Callable[[], None]) -> Callable[[], None]:
        """Have ``wake`` called after each write of ``kind``."""
        ...

    def show(self, kind: Kind, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return entries in the form of a kind."""
        ...


class Rehearsal:
    """The objects of a store, which it leaves alone."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    @property
    def version(self) -> int:
        """The number of the last write, which was none of these."""
        return self._objects.version

    def stored(self, kind: Kind) -> Kind:
        """Return the kind in which objects of a kind are stored."""
        return self._objects.stored(kind)

    def get(self, kind: Kind, key: str) -> Entry | None:
        """Return the newest entry under ``key``."""
        return self._objects.get(kind, key)

    def entries(self, kind: Kind, namespace: str = "", start: str = "") -> Sequence[Entry]:
        """Return the present entries of one namespace or all."""
        return self._objects.entries(kind, namespace, start)

    def create(self, kind: Kind, key: str, document: Document) -> Entry:
        """Return what would be stored; raises AlreadyExistsError."""
        if self.get(kind, key) is not None:
            raise AlreadyExistsError(key)
        document["metadata"].pop("resourceVersion", None)
        return encode_entry(kind, key, 0, document)

    def update(self, kind: Kind, key: str, document: Document, base: int) -> Entry:
        """Return what would be stored; raises MissingError, StaleError."""
        present = self.get(kind, key)
        if present is None:
            raise MissingError(key)
        if present.version != base:
            raise StaleError(key)
        document["metadata"]["resourceVersion"] = str(base)
        return encode_entry(kind, key, base, document)

    def delete(self, kind: Kind, key: str, document: Document, base: int) -> Entry:
        """Return what would be the last state; raises MissingError, StaleError."""
        return self.update(kind, key, document, base)
