"""Watches: cursors in the history of one resource.

A :class:`Watch` holds no events of its own. It stores the version that it has reached, and reads on
from the store's history when asked. A client that stalls therefore costs only its cursor, and each
event exists once for any number of clients. As upstream, a watch of a version before the history
gets an ERROR event (410 Expired), and a watch that falls behind the history later ends without one:
its client continues from the last version that it has seen.

The start of a watch:

- resourceVersion unset or ``0``: as with ``sendInitialEvents=true``;
- ``N``: the events after ``N``. Upstream waits for an ``N`` in the future; here such a version
  comes from a server that ran before this one, so the watch expires and its client lists again;
- ``sendInitialEvents=true``: the present objects as ADDED, if bookmarks are allowed a BOOKMARK
  annotated ``k8s.io/initial-events-end``, then the events that follow; with ``false``: only those.

An object that begins to match the selectors is ADDED. One that ceases to match is DELETED, with its
previous state and the version of the event.

    while it matches    before: no       before: yes
    after: no           nothing          DELETED (the state before)
    after: yes          ADDED            MODIFIED

Sources: k8s.io/apiserver/pkg/storage/cacher (cache_watcher.go, cacher.go) and
endpoints/handlers/watch.go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import orjson

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.store.dry_run import ReadOnlyHistory
from fakeapi.apiserver.store.object_store import Entry, StoreEvent
from fakeapi.apiserver.store.store_errors import ExpiredError, HistoryOverflowError
from fakeapi.apiserver.wire.errors import StatusError, expired, too_large_version
from fakeapi.apiserver.wire.http_messages import JSON
from fakeapi.apiserver.wire.request_options import ListOptions
from fakeapi.apiserver.wire.selectors import SelectionPredicate

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Watch:
    """One client's watch of a resource, as lines of JSON, or as what transforms make of them.

    ``content_type`` is the type of the stream, ``bookmarks`` is whether the client requests
    bookmarks, and ``timeout_seconds`` the requested duration of the watch (None: the server
    chooses).
    """

    def __init__(
        self,
        store: ReadOnlyHistory,
        kind: ResourceInfo,
        namespace: str,
        selection: SelectionPredicate,
        options: ListOptions,
    ) -> None:
        self.kind = kind
        self.content_type = JSON
        self.bookmarks = options.bookmarks
        self.timeout_seconds = options.timeout_seconds
        self.ended = False
        self._store = store
        self._prefix = f"{namespace}/" if namespace else ""
        self._selection = selection
        self._selects_all = not namespace and not selection
        self._initial: deque[Entry] = deque()
        self._version = options.version_number
        self._bookmark_pending = False
        self._behind: int | None = None
        self._follows = options.initial_events or not options.version_number
        self._transforms: list[Callable[[bytes], bytes]] = []
        self._start(namespace, options)

    def add_transform(self, transform: Callable[[bytes], bytes]) -> None:
        """Add a function that converts every line before it is returned; functions run in order."""
        self._transforms.append(transform)

    def read(self, limit: int) -> Sequence[bytes]:
        """Return the next lines, about ``limit`` at most; none if there is nothing new yet.

        After the line of an ERROR event, ``ended`` is true.
        """
        lines = self._read(limit)
        return [self._transformed(line) for line in lines] if self._transforms else lines

    def bookmark(self) -> bytes:
        """Return a BOOKMARK line of the present version; call it only after reading all."""
        self._version = max(self._version, self._store.version)
        return self._transformed(self._bookmark({}))

    def due_bookmark(self) -> Sequence[bytes]:
        """Return a bookmark if the client requests them; call it only after reading all."""
        return [self.bookmark()] if self.bookmarks else []

    def start_behind(self, version: int) -> None:
        """Start with the state at an older version, as a lagging watch cache does.

        The later changes follow as events. Call it before the first read.
        """
        self._behind = version

    def expire(self) -> bytes:
        """End the watch as if the history had been compacted, and return the ERROR line."""
        self.ended = True
        too_old = ExpiredError(self._version, self._store.version)
        return self._transformed(_error_line(expired(str(too_old))))

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call ``wake`` when there may be lines to read, until the returned function is called."""
        return self._store.listen(self.kind, wake)

    def _read(self, limit: int) -> Sequence[bytes]:
        if self._behind is not None:
            self._rewind(self._behind)
        if self._initial:
            entries = [self._initial.popleft() for _ in range(min(limit, len(self._initial)))]
            return [_watch_line(b"ADDED", self.kind, entry.raw) for entry in entries]
        if self._bookmark_pending:
            self._bookmark_pending = False
            return [self._bookmark({_INITIAL_EVENTS_END: "true"})]
        return self._read_events(limit)

    def _transformed(self, line: bytes) -> bytes:
        for face in self._transforms:
            line = face(line)
        return line

    def _start(self, namespace: str, options: ListOptions) -> None:
        store = self._store
        if options.initial_events and options.version_number > store.version:
            raise too_large_version(options.version_number, store.version)
        if options.initial_events:
            entries = store.entries(self.kind, namespace)
            self._initial.extend(filter(self._selection.matches, entries))
            self._version = store.version
            self._bookmark_pending = options.bookmarks
        elif not options.version_number:
            self._version = store.version

    def _rewind(self, version: int) -> None:
        try:
            entries = self._store.entries_at(self.kind, version, self._prefix.removesuffix("/"))
        except ExpiredError:
            entries = ()  # the events after it are gone, too: the next read returns an error
        self._initial = deque(filter(self._selection.matches, entries))
        self._version, self._behind = version, None

    def _read_events(self, limit: int) -> Sequence[bytes]:
        lines: list[bytes] = []
        while not lines:
            if self._follows:
                self._version = self._store.reached(self.kind, self._version)
            try:
                events = self._store.since(self.kind, self._version, limit)
                self._follows = True
            except ExpiredError as error:
                self.ended = True
                if self._follows and isinstance(error, HistoryOverflowError):
                    return []
                return [_error_line(expired(str(error)))]
            except StatusError as failure:  # the event cannot be converted to this version
                self.ended = True
                return [_error_line(failure)]
            if not events:
                break
            lines = [line for line in map(self._event_line, events) if line]
            self._version = events[-1].version
        return lines

    def _event_line(self, event: StoreEvent) -> bytes | None:
        before = event.type != "ADDED" and self._is_selected(event.previous)
        after = event.type != "DELETED" and self._is_selected(event.entry)
        if after:
            return _watch_line(b"MODIFIED" if before else b"ADDED", self.kind, event.entry.raw)
        if before:
            return _watch_line(b"DELETED", self.kind, _last_state(event))
        return None

    def _is_selected(self, entry: Entry | None) -> bool:
        if self._selects_all:
            return entry is not None
        return (
            entry is not None
            and entry.key.startswith(self._prefix)
            and self._selection.matches(entry)
        )

    def _bookmark(self, annotations: dict[str, str]) -> bytes:
        metadata: dict[str, object] = {"resourceVersion": str(self._version)}
        if annotations:
            metadata["annotations"] = annotations
        return _watch_line(b"BOOKMARK", self.kind, orjson.dumps({"metadata": metadata}))


def _last_state(event: StoreEvent) -> bytes:
    if event.type == "DELETED" or event.previous is None:
        return event.entry.raw
    document = event.previous.document()
    document["metadata"]["resourceVersion"] = str(event.version)
    return orjson.dumps(document)


def encode_event(event: StoreEvent) -> bytes:
    """Return the line of an event in a watch without selectors."""
    return _watch_line(event.type.encode(), event.kind, event.entry.raw)


def _watch_line(event_type: bytes, kind: ResourceInfo, raw: bytes) -> bytes:
    return b"".join((b'{"type":"', event_type, b'","object":', kind.head, raw[1:], b"}\n"))


def _error_line(error: StatusError) -> bytes:
    return orjson.dumps({"type": "ERROR", "object": error.document()}) + b"\n"
