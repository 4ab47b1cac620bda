"""The store: every object at its newest version, and the history that watches replay.

Rules, all of them those of etcd as kube-apiserver uses it:

- One counter numbers all writes. Each write of any object takes the next number; it becomes the
  object's ``resourceVersion`` and the version of exactly one event. (Clearing the store takes a
  number too, and leaves no event.)
- Objects are kept as the JSON bytes of their last write, without ``kind`` and ``apiVersion``, as
  they stand inside lists; a list is these bytes joined. An :class:`Entry` never changes, so whoever
  holds one holds a snapshot of that object.
- Keys order as etcd orders them: by the bytes of ``namespace/name``, so ``a-b/x`` comes before
  ``a/x``.
- The history of each resource reaches back to a *floor*. What happened after version ``v`` is known
  exactly if ``v >= floor``; otherwise reading raises :class:`ExpiredError`. The floor rises when a
  resource has had more events than the history holds, and by :meth:`Store.compact`.
- An older state is the present one with the later events undone, which is why every event carries
  the entry before it.
- A fork is a store of its own with the same content, version and history; what is written to one is
  not seen by the other. Restoring from a store brings back its objects with the versions they had,
  while the store's own version goes on (and takes a number), so that no version ever means two
  states; the history begins anew, and every watch expires. Both share what did not change.

    versions   1        2        3            floor 1: "since 1" gives 2 and 3,
    events     ADDED a  ADDED b  DELETED a    "since 0" is expired, "at 2" is {a, b}

The store knows no time, no randomness and no sockets: what to write is decided by its caller.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from typing import Any, Final, Literal

import orjson

from fakeapi.keyspace import KeySpace
from fakeapi.kinds import Kind, SelectableField

Document = dict[str, Any]
"""One API object as parsed JSON, at the edge where its shape is the client's."""

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

DEFAULT_HISTORY: Final = 32_768


class StoreError(Exception):
    """A write or a read that the present state does not allow."""


class AlreadyExistsError(StoreError):
    """A create found an object under its key."""


class StaleError(StoreError):
    """A write was based on a version that is no longer the newest."""


class MissingError(StoreError):
    """There is no object under the key."""


class ExpiredError(StoreError):
    """A version is older than the history; ``floor`` is the oldest that can be replayed."""

    def __init__(self, version: int, floor: int) -> None:
        super().__init__(f"too old resource version: {version} ({floor})")
        self.version = version
        self.floor = floor


@dataclass(frozen=True, slots=True)
class Entry:
    """One object at one version, in the form of ``kind``.

    ``fields`` are the kind's selectable values in its order.
    """

    kind: Kind
    key: str
    version: int
    raw: bytes
    labels: Mapping[str, str]
    fields: tuple[str, ...]

    def document(self) -> Document:
        """Decode a fresh copy, without kind and apiVersion."""
        document: Document = orjson.loads(self.raw)
        return document


@dataclass(frozen=True, slots=True)
class Event:
    """One write: the entry it made (of a deletion: the last state), and the entry before it."""

    type: EventType
    kind: Kind
    entry: Entry
    previous: Entry | None

    @property
    def version(self) -> int:
        """The write's number."""
        return self.entry.version


Listener = Callable[[], None]
Tap = Callable[["Event | None"], None]
"""Is told of each event as it is written, of all resources; None: the store was restored."""


@dataclass(slots=True)
class _Table:
    """Objects in the order of their keys, history and listeners of one resource."""

    objects: KeySpace[Entry] = field(default_factory=KeySpace)
    events: list[Event] = field(default_factory=list)
    floor: int = 0
    listeners: dict[object, Listener] = field(default_factory=dict)

    def forget_until(self, index: int) -> None:
        if index > 0:
            self.floor = self.events[index - 1].version
            del self.events[:index]

    def fork(self) -> _Table:
        return _Table(self.objects.copy(), self.events[:], self.floor)

    def wake(self) -> None:
        for wake in tuple(self.listeners.values()):
            wake()


class Store:
    """Objects by resource and key; see the module's rules.

    ``history`` is how many events of one resource can be replayed at least.
    """

    def __init__(self, history: int = DEFAULT_HISTORY) -> None:
        self.version = 0
        self._history = history
        self._floor = 0
        self._tables: dict[str, _Table] = {}
        self._taps: dict[object, Tap] = {}

    def stored(self, kind: Kind) -> Kind:
        """Return the kind in which objects are stored: here always their own."""
        return kind

    def get(self, kind: Kind, key: str) -> Entry | None:
        """Return the newest entry under ``key``."""
        return self._table(kind).objects.get(key)

    def entries(self, kind: Kind, namespace: str = "", start: str = "") -> Sequence[Entry]:
        """Return the present entries in key order, of one namespace or all, from ``start`` on."""
        return _span(self._table(kind).objects, namespace, start)

    def entries_at(
        self, kind: Kind, version: int, namespace: str = "", start: str = ""
    ) -> Sequence[Entry]:
        """Return the entries as they were at ``version``; raises ExpiredError."""
        later = self.since(kind, version)
        if not later:
            return self.entries(kind, namespace, start)
        objects = self._table(kind).objects.copy()
        for event in reversed(later):
            if event.previous is None:
                objects.remove(event.entry.key)
            else:
                objects.put(event.entry.key, event.previous)
        return _span(objects, namespace, start)

    def create(self, kind: Kind, key: str, document: Document) -> Entry:
        """Store a new object; takes ``document`` over. Raises AlreadyExistsError."""
        table = self._table(kind)
        if table.objects.get(key) is not None:
            raise AlreadyExistsError(key)
        entry = self._write(kind, key, document)
        table.objects.put(key, entry)
        self._record(Event("ADDED", kind, entry, None))
        return entry

    def update(self, kind: Kind, key: str, document: Document, base: int) -> Entry:
        """Replace the object whose version is ``base``; takes ``document`` over.

        Raises MissingError, and StaleError if the object has moved on since ``base``.
        """
        previous = self._current(kind, key, base)
        entry = self._write(kind, key, document)
        self._table(kind).objects.put(key, entry)
        self._record(Event("MODIFIED", kind, entry, previous))
        return entry

    def renew(self, newest: Entry, raw: bytes) -> Entry:
        """Replace the newest entry of an object by one that nothing is selected by differently.

        ``raw`` bears the version that the write will have. Raises StaleError if it is not the
        newest.
        """
        table = self._table(newest.kind)
        if table.objects.get(newest.key) is not newest:
            raise StaleError(newest.key)
        self.version += 1
        same = newest.labels, newest.fields
        entry = Entry(newest.kind, newest.key, self.version, raw, *same)
        table.objects.put(newest.key, entry)
        self._record(Event("MODIFIED", newest.kind, entry, newest))
        return entry

    def delete(self, kind: Kind, key: str, document: Document, base: int) -> Entry:
        """Remove the object whose version is ``base``; ``document`` is what it last was.

        Gives the final entry, which bears the deletion's version. Raises MissingError, StaleError.
        """
        previous = self._current(kind, key, base)
        entry = self._write(kind, key, document)
        self._table(kind).objects.remove(key)
        self._record(Event("DELETED", kind, entry, previous))
        return entry

    def since(self, kind: Kind, version: int, limit: int | None = None) -> Sequence[Event]:
        """Return the events after ``version``, at most ``limit``; raises ExpiredError.

        A version that is yet to come was given by a server that ran before: what it stood for is
        gone, too.
        """
        table = self._table(kind)
        if not table.floor <= version <= self.version:
            raise ExpiredError(version, table.floor)
        first = bisect_right(table.events, version, key=_version)
        return table.events[first : None if limit is None else first + limit]

    def history(self) -> Sequence[Event]:
        """Return every event that is still known, of all resources, in order of version."""
        return list(merge(*(table.events for table in self._tables.values()), key=_version))

    def compact(self, version: int) -> None:
        """Forget all events up to and including ``version`` (at most the newest)."""
        self._floor = max(self._floor, min(version, self.version))
        for table in self._tables.values():
            table.forget_until(bisect_right(table.events, self._floor, key=_version))
            table.floor = max(table.floor, self._floor)

    def floor(self, kind: Kind) -> int:
        """Return the oldest version since which the events of ``kind`` are known."""
        return self._table(kind).floor

    def clear(self) -> None:
        """Drop every object and all history; versions go on, so that every watch expires."""
        self.restore(Store())

    def fork(self) -> Store:
        """Return a store of the same content, version and history that goes its own way."""
        other = Store(self._history)
        other.version, other._floor = self.version, self._floor
        other._tables = {name: table.fork() for name, table in self._tables.items()}
        return other

    def restore(self, saved: Store) -> None:
        """Take over the objects of ``saved``; the history begins anew, and every watch expires."""
        self.version = max(self.version, saved.version) + 1
        self.compact(self.version)
        for name in {**self._tables, **saved._tables}:
            table = self._tables.setdefault(name, _Table(floor=self._floor))
            source = saved._tables.get(name)
            table.objects = source.objects.copy() if source else KeySpace()
        for table in tuple(self._tables.values()):
            table.wake()
        self._tell(None)

    def show(self, kind: Kind, entries: Sequence[Entry]) -> Sequence[Entry]:  # noqa: ARG002
        """Return entries in the form of a kind: here always as they are."""
        return entries

    def listen(self, kind: Kind, wake: Listener) -> Callable[[], None]:
        """Have ``wake`` called after each write of ``kind``, until the result is called."""
        token = object()
        listeners = self._table(kind).listeners
        listeners[token] = wake

        def cancel() -> None:
            listeners.pop(token, None)

        return cancel

    def tap(self, told: Tap) -> Callable[[], None]:
        """Have ``told`` called with each event, until the result is called."""
        token = object()
        self._taps[token] = told

        def cancel() -> None:
            self._taps.pop(token, None)

        return cancel

    def _tell(self, event: Event | None) -> None:
        for told in tuple(self._taps.values()):
            told(event)

    def _table(self, kind: Kind) -> _Table:
        table = self._tables.get(kind.resource)
        if table is None:
            table = self._tables[kind.resource] = _Table(floor=self._floor)
        return table

    def _current(self, kind: Kind, key: str, base: int) -> Entry:
        entry = self.get(kind, key)
        if entry is None:
            raise MissingError(key)
        if entry.version != base:
            raise StaleError(key)
        return entry

    def _write(self, kind: Kind, key: str, document: Document) -> Entry:
        version = self.version + 1
        document["metadata"]["resourceVersion"] = str(version)
        entry = encode_entry(kind, key, version, document)
        self.version = version
        return entry

    def _record(self, event: Event) -> None:
        table = self._table(event.kind)
        table.events.append(event)
        if len(table.events) >= self._history + self._history // 4 + 1:
            table.forget_until(len(table.events) - self._history)
        table.wake()
        if self._taps:
            self._tell(event)


def encode_entry(kind: Kind, key: str, version: int, document: Document) -> Entry:
    """Encode a document as it stands; takes it over, and takes kind and apiVersion out of it."""
    metadata = document.pop("metadata")
    document.pop("kind", None)
    document.pop("apiVersion", None)
    raw = orjson.dumps({"metadata": metadata, **document})
    labels = {sys.intern(k): sys.intern(v) for k, v in (metadata.get("labels") or {}).items()}
    document["metadata"] = metadata
    return Entry(kind, key, version, raw, labels, _field_values(kind.fields, document))


def _version(event: Event) -> int:
    return event.entry.version


def _span(objects: KeySpace[Entry], namespace: str, start: str) -> Sequence[Entry]:
    """Return the entries in ``namespace`` ("" is all) whose keys do not stand before ``start``."""
    if not namespace:
        return objects.between(start)
    return objects.between(max(start, f"{namespace}/"), f"{namespace}0")  # "0" follows "/"


def _field_values(fields: Sequence[SelectableField], document: Document) -> tuple[str, ...]:
    return tuple(_field_value(selectable, document) for selectable in fields)


def _field_value(selectable: SelectableField, document: Document) -> str:
    for path in selectable.paths:
        value: Any = document
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, bool):
            return "true" if value else "false"
        if value not in (None, ""):
            return sys.intern(str(value))
    return selectable.absent
