"""Object store: the newest version of every object, and the history that watches replay.

The rules are those of etcd as kube-apiserver uses it:

- One counter numbers all writes. Each write of any object takes the next number, which is the
  object's ``resourceVersion`` and the version of exactly one event. (Clearing the store takes a
  number as well, without an event.)
- Objects are kept as the JSON bytes of their last write, without ``kind`` and ``apiVersion``, as
  lists contain them; a list is these bytes joined. An :class:`Entry` is immutable, so a reference
  to one is a snapshot of that object.
- Keys are ordered as in etcd: by the bytes of ``namespace/name``, so ``a-b/x`` precedes ``a/x``.
- The history of each resource starts at a *floor*. The events after version ``v`` are available if
  and only if ``v >= floor``; otherwise reading raises :class:`ExpiredError`. The floor rises when a
  resource has more events than the history holds, and by :meth:`Store.compact`.
- An older state is the current state with the later events undone, which is why every event holds
  the previous entry.
- A fork is an independent store with the same content, version and history. Restoring a store
  brings back its objects with their versions, while the version counter continues (and takes a
  number), so that a version never denotes two states; the history starts again, and every watch
  expires. Both share unchanged data.

    versions   1        2        3            floor 1: "since 1" returns 2 and 3,
    events     ADDED a  ADDED b  DELETED a    "since 0" is expired, "at 2" is {a, b}

The store uses no clock, no randomness and no sockets: its caller decides what to write.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from typing import Any, Final, Literal

import orjson

from fakeapi.apiserver.kinds import ResourceInfo, SelectableField
from fakeapi.apiserver.store.copy_on_write_map import CopyOnWriteMap
from fakeapi.apiserver.store.store_errors import (
    AlreadyExistsError,
    ConflictError,
    ExpiredError,
    HistoryOverflowError,
    NotFoundError,
    VersionSetError,
)

Document = dict[str, Any]
"""One API object as parsed JSON, with the structure that the client sent."""

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

DEFAULT_HISTORY: Final = 32_768
_KEPT_STATES: Final = 8


@dataclass(frozen=True, slots=True)
class Entry:
    """One object at one version, in the API version of ``kind``.

    ``fields`` are the values of the kind's selectable fields, in their order.
    """

    kind: ResourceInfo
    key: str
    version: int
    raw: bytes
    labels: Mapping[str, str]
    fields: tuple[str, ...]

    def document(self) -> Document:
        """Decode the object into a new document, without kind and apiVersion."""
        document: Document = orjson.loads(self.raw)
        return document


@dataclass(frozen=True, slots=True)
class StoreEvent:
    """One write: the entry that it created (a deletion: the last state), and the previous entry."""

    type: EventType
    kind: ResourceInfo
    entry: Entry
    previous: Entry | None

    @property
    def version(self) -> int:
        """The version of the write."""
        return self.entry.version


Listener = Callable[[], None]
EventTap = Callable[["StoreEvent | None"], None]
"""Called with each event of all resources as it is written; None: the store was restored."""


@dataclass(slots=True)
class ResourceState:
    """The objects in key order, the history and the listeners of one resource.

    ``states`` are the objects at some older versions: the next page of a list reads one again.
    """

    objects: CopyOnWriteMap[Entry] = field(default_factory=CopyOnWriteMap)
    events: list[StoreEvent] = field(default_factory=list)
    floor: int = 0
    states: dict[int, CopyOnWriteMap[Entry]] = field(default_factory=dict)
    listeners: dict[object, Listener] = field(default_factory=dict)

    def state_at(self, version: int, later: Sequence[StoreEvent]) -> CopyOnWriteMap[Entry]:
        """Return the objects at a version, after which there were the ``later`` events."""
        objects = self.states.pop(version, None)
        if objects is None:
            objects = self.objects.copy()
            for event in reversed(later):
                if event.previous is None:
                    objects.remove(event.entry.key)
                else:
                    objects.put(event.entry.key, event.previous)
        self.states[version] = objects
        if len(self.states) > _KEPT_STATES:
            del self.states[next(iter(self.states))]
        return objects

    def discard_until(self, index: int) -> None:
        """Discard the events before ``index``; the version of the last of them is ``floor``."""
        if index > 0:
            self.floor = self.events[index - 1].version
            del self.events[:index]

    def fork(self) -> ResourceState:
        """Return a copy without listeners."""
        return ResourceState(self.objects.copy(), self.events[:], self.floor)

    def wake(self) -> None:
        """Call all listeners."""
        for wake in tuple(self.listeners.values()):
            wake()


class Store:
    """Objects by resource and key; see the module docstring.

    ``history`` is the minimum number of events of one resource that can be replayed.
    """

    def __init__(self, history: int = DEFAULT_HISTORY) -> None:
        self.version = 0
        self._history = history
        self.oldest_read = 0
        self._floor = 0
        self._tables: dict[str, ResourceState] = {}
        self._taps: dict[object, EventTap] = {}

    def stored(self, kind: ResourceInfo) -> ResourceInfo:
        """Return the kind in which objects are stored: here always ``kind`` itself."""
        return kind

    def get(self, kind: ResourceInfo, key: str) -> Entry | None:
        """Return the newest entry of ``key``, or None."""
        return self._table(kind).objects.get(key)

    def entries(self, kind: ResourceInfo, namespace: str = "", start: str = "") -> Sequence[Entry]:
        """Return the current entries in key order, of one namespace or all, from ``start`` on."""
        objects = self._table(kind).objects
        return _span(objects, namespace, start) if len(objects) else []

    def entries_at(
        self, kind: ResourceInfo, version: int, namespace: str = "", start: str = ""
    ) -> Sequence[Entry]:
        """Return the entries as they were at ``version``; raises ExpiredError."""
        later = self.since(kind, version)
        if not later:
            return self.entries(kind, namespace, start)
        return _span(self._table(kind).state_at(version, later), namespace, start)

    def create(self, kind: ResourceInfo, key: str, document: Document) -> Entry:
        """Store a new object; takes ownership of ``document``.

        A version that is not a number is ignored. Raises VersionSetError, AlreadyExistsError.
        """
        if document["metadata"].pop("resourceVersion", "").strip("0").isdecimal():
            raise VersionSetError(key)
        table = self._table(kind)
        if table.objects.get(key) is not None:
            raise AlreadyExistsError(key)
        entry = self._write(kind, key, document)
        table.objects.put(key, entry)
        self._record(StoreEvent("ADDED", kind, entry, None))
        return entry

    def update(self, kind: ResourceInfo, key: str, document: Document, base: int) -> Entry:
        """Replace the object whose version is ``base``; takes ownership of ``document``.

        Raises NotFoundError, and ConflictError if the object has another version than ``base``.
        """
        previous = self._current(kind, key, base)
        entry = self._write(kind, key, document)
        self._table(kind).objects.put(key, entry)
        self._record(StoreEvent("MODIFIED", kind, entry, previous))
        return entry

    def renew(self, newest: Entry, raw: bytes) -> Entry:
        """Replace the newest entry of an object by one with the same labels and selectable fields.

        ``raw`` contains the resourceVersion of this write. Raises ConflictError if ``newest`` is
        not the newest entry.
        """
        table = self._table(newest.kind)
        if table.objects.get(newest.key) is not newest:
            raise ConflictError(newest.key)
        self.version += 1
        same = newest.labels, newest.fields
        entry = Entry(newest.kind, newest.key, self.version, raw, *same)
        table.objects.put(newest.key, entry)
        self._record(StoreEvent("MODIFIED", newest.kind, entry, newest))
        return entry

    def delete(self, kind: ResourceInfo, key: str, document: Document, base: int) -> Entry:
        """Remove the object whose version is ``base``; ``document`` is its last state.

        Returns the final entry with the version of the deletion. Raises NotFoundError,
        ConflictError.
        """
        previous = self._current(kind, key, base)
        entry = self._write(kind, key, document)
        self._table(kind).objects.remove(key)
        self._record(StoreEvent("DELETED", kind, entry, previous))
        return entry

    def since(
        self, kind: ResourceInfo, version: int, limit: int | None = None
    ) -> Sequence[StoreEvent]:
        """Return the events after ``version``, at most ``limit``; raises ExpiredError.

        A version above the current one is from an earlier server, whose state no longer exists.
        """
        table, floor = self._table(kind), self.floor(kind)
        if not floor <= version <= self.version:
            overflow = self._floor <= version < floor
            raise (HistoryOverflowError if overflow else ExpiredError)(version, floor)
        first = bisect_right(table.events, version, key=_version)
        return table.events[first : None if limit is None else first + limit]

    def history(self) -> Sequence[StoreEvent]:
        """Return all events in the history, of all resources, in the order of their versions."""
        return list(merge(*(table.events for table in self._tables.values()), key=_version))

    def compact(self, version: int) -> None:
        """Discard all events up to and including ``version`` (at most the newest)."""
        self._floor = max(self._floor, min(version, self.version))
        for table in self._tables.values():
            table.discard_until(bisect_right(table.events, self._floor, key=_version))

    def expire_reads(self, version: int) -> None:
        """Let lists at the states before ``version`` expire (at most the newest)."""
        self.oldest_read = max(self.oldest_read, min(version, self.version))
        for table in self._tables.values():
            table.states = {at: each for at, each in table.states.items() if at >= self.oldest_read}

    def floor(self, kind: ResourceInfo) -> int:
        """Return the oldest version after which all events of ``kind`` are available."""
        return max(self._floor, self._table(kind).floor)

    def reached(self, kind: ResourceInfo, version: int) -> int:
        """Return where the reader of all events until ``version`` is: a compaction ends none."""
        return self.floor(kind) if self._table(kind).floor <= version < self._floor else version

    def clear(self) -> None:
        """Delete all objects and the history; versions continue, so that every watch expires."""
        self.restore(Store())

    def fork(self) -> Store:
        """Return an independent store with the same content, version and history."""
        other = Store(self._history)
        other.version, other._floor = self.version, self._floor
        other.oldest_read = self.oldest_read
        other._tables = {name: table.fork() for name, table in self._tables.items()}
        return other

    def restore(self, saved: Store) -> None:
        """Replace all objects by those of ``saved``; clear the history; every watch expires."""
        self.version = max(self.version, saved.version) + 1
        self.compact(self.version)
        for name in {**self._tables, **saved._tables}:
            table = self._tables.setdefault(name, ResourceState(floor=self._floor))
            source = saved._tables.get(name)
            table.objects = source.objects.copy() if source else CopyOnWriteMap()
        for table in tuple(self._tables.values()):
            table.floor, table.states = self._floor, {}
            table.wake()
        self._notify_taps(None)

    def convert_entries(self, kind: ResourceInfo, entries: Sequence[Entry]) -> Sequence[Entry]:  # noqa: ARG002
        """Return entries in the API version of a kind: here always unchanged."""
        return entries

    def listen(self, kind: ResourceInfo, wake: Listener) -> Callable[[], None]:
        """Call ``wake`` after each write of ``kind``; the result cancels the registration."""
        token = object()
        listeners = self._table(kind).listeners
        listeners[token] = wake

        def cancel() -> None:
            listeners.pop(token, None)

        return cancel

    def tap(self, callback: EventTap) -> Callable[[], None]:
        """Call ``callback`` with each event; the result cancels the registration."""
        token = object()
        self._taps[token] = callback

        def cancel() -> None:
            self._taps.pop(token, None)

        return cancel

    def _notify_taps(self, event: StoreEvent | None) -> None:
        for tap in tuple(self._taps.values()):
            tap(event)

    def _table(self, kind: ResourceInfo) -> ResourceState:
        table = self._tables.get(kind.resource)
        if table is None:
            table = self._tables[kind.resource] = ResourceState(floor=self._floor)
        return table

    def _current(self, kind: ResourceInfo, key: str, base: int) -> Entry:
        entry = self.get(kind, key)
        if entry is None:
            raise NotFoundError(key)
        if entry.version != base:
            raise ConflictError(key)
        return entry

    def _write(self, kind: ResourceInfo, key: str, document: Document) -> Entry:
        version = self.version + 1
        document["metadata"]["resourceVersion"] = str(version)
        entry = encode_entry(kind, key, version, document)
        self.version = version
        return entry

    def _record(self, event: StoreEvent) -> None:
        table = self._table(event.kind)
        table.events.append(event)
        if len(table.events) >= self._history + self._history // 4 + 1:
            table.discard_until(len(table.events) - self._history)
        table.wake()
        if self._taps:
            self._notify_taps(event)


def encode_entry(kind: ResourceInfo, key: str, version: int, document: Document) -> Entry:
    """Encode a document; takes ownership of it and removes kind and apiVersion from it."""
    metadata = document.pop("metadata")
    document.pop("kind", None)
    document.pop("apiVersion", None)
    # A copy: bytes as orjson returns them can hold four times their size.
    raw = bytes(memoryview(orjson.dumps({"metadata": metadata, **document})))
    labels = {sys.intern(k): sys.intern(v) for k, v in (metadata.get("labels") or {}).items()}
    document["metadata"] = metadata
    return Entry(kind, key, version, raw, labels, _field_values(kind.fields, document))


def _version(event: StoreEvent) -> int:
    return event.entry.version


def _span(objects: CopyOnWriteMap[Entry], namespace: str, start: str) -> Sequence[Entry]:
    """Return the entries in ``namespace`` ("" is all) whose keys are ``start`` or later."""
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
