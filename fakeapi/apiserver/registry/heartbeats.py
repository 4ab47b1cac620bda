"""Heartbeats: a fast path for writes that repeat an earlier write with new times.

A kubelet renews its Lease every ten seconds, and the times in its Node's conditions every five
minutes. In a large cluster these are nearly all writes, and each equals the previous one except for
times. The result of the normal write path for such a write (decoding, defaults, field ownership,
validation; :mod:`fakeapi.apiserver.registry.generic_registry`) is *learned*, and later writes only
fill in the new values:

    stored   … "resourceVersion":"7" … "time":"…:00Z" … "renewTime":"…:00.000000Z" …
    sent     the same, with                             "renewTime":"…:10.000000Z"
    stored   … "resourceVersion":"9" … "time":"…:10Z" … "renewTime":"…:10.000000Z" …

A write is learned only if it changed the *heartbeat time*, which is stored as it was sent, and
nothing else: the states before and after it differ only in the version and in the time of the
writer's entry in managedFields (the last one, and its position is unchanged). The normal write path
uses these three values only to check that the version is the newest and that the heartbeat time has
changed, and to order entries by time. The next request of the same shape, by the same client, for
the object in the state that this write left, therefore has a result of the same shape. Requests for
another representation (a Table, YAML, indentation) are not learned.

Other requests use the normal write path, which is the specification: this module decides nothing,
and tests compare both paths.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fakeapi.apiserver.objects.patch import STRATEGIC_PATCH
from fakeapi.apiserver.printers.representation import encoded_response
from fakeapi.apiserver.registry.generic_registry import Target
from fakeapi.apiserver.store.object_store import Document, Entry, Store
from fakeapi.apiserver.store.store_errors import ConflictError
from fakeapi.apiserver.watch.list_pages import encode_object
from fakeapi.apiserver.wire.http_messages import JSON, Request, Response
from fakeapi.apiserver.wire.negotiation import PLAIN_JSON, PLAIN_PROTOBUF, negotiate

MAX_HEARTBEATS: Final = 50_000

_HEARTBEAT_TIME: Final = re.compile(
    rb"\d{4}-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)"
    rb"|(?:0[13578]|1[02])-31)T(?:[01]\d|2[0-3])(?::[0-5]\d){2}(?:\.\d{6})?Z"
)
"""Any of the time formats, but 29 February, which takes the usual path."""
_VERSION, _TIME, _HEARTBEAT_MARK = (f"\ue000{name}\ue000" for name in ("version", "time", "beat"))
_MARKS: Final = tuple(mark.encode() for mark in (_VERSION, _TIME, _HEARTBEAT_MARK))
_HEARTBEAT_TIME_INDEX: Final = 2
_MARK_PATTERN: Final = re.compile(b"(" + b"|".join(_MARKS) + b")")

HeartbeatValues = tuple[bytes, bytes, bytes]
"""The values of a heartbeat: version, time (b"" without managedFields), and heartbeat time."""


class HeartbeatShape:
    """JSON with placeholders for values; equal if its placeholders and its other bytes are."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        pieces = _MARK_PATTERN.split(orjson.dumps(document))  # every second one is a placeholder
        self._marks = tuple(_MARKS.index(mark) for mark in pieces[1::2])
        self._format = b"%b".join(literal.replace(b"%", b"%%") for literal in pieces[::2])
        before = (
            self._marks.index(_HEARTBEAT_TIME_INDEX) if _HEARTBEAT_TIME_INDEX in self._marks else 0
        )
        self._begin = sum(map(len, pieces[: 2 * before + 1 : 2]))
        self._marks_before = self._marks[:before]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HeartbeatShape):
            return NotImplemented
        return (self._marks, self._format) == (other._marks, other._format)

    def __hash__(self) -> int:
        return hash((self._marks, self._format))

    def fill(self, values: HeartbeatValues) -> bytes:
        """Return the JSON with values in place of the placeholders."""
        return self._format % tuple([values[mark] for mark in self._marks])

    def heartbeat_time_of(self, body: bytes, learned: HeartbeatValues) -> bytes | None:
        """Return the heartbeat time of a body that has this shape and the other known values.

        Return None for other bodies.
        """
        begin = self._begin + sum([len(learned[mark]) for mark in self._marks_before])
        beat = body[begin : begin + len(learned[_HEARTBEAT_TIME_INDEX])]
        if _HEARTBEAT_TIME.fullmatch(beat) is None:
            return None
        return beat if self.fill((*learned[:_HEARTBEAT_TIME_INDEX], beat)) == body else None


@dataclass(slots=True)
class LearnedHeartbeat:
    """The learned heartbeat of a path; invalid once another entry than ``entry`` is stored.

    ``signature`` describes the requests and their client; ``sent`` and ``stored`` are their shapes.
    """

    entry: Entry
    signature: tuple[str, ...]
    sent: HeartbeatShape
    stored: HeartbeatShape
    values: HeartbeatValues


class HeartbeatCache:
    """The learned heartbeats of one store; ``timestamp`` returns the server's time.

    At most ``MAX_HEARTBEATS`` paths are kept.
    """

    def __init__(self, store: Store, timestamp: Callable[[int], str]) -> None:
        self._store = store
        self._timestamp = timestamp
        self._known: dict[str, LearnedHeartbeat] = {}

    def serve(self, request: Request) -> Response | None:
        """Serve a heartbeat; return None if the request needs the normal write path."""
        learned = self._known.get(request.path)
        if learned is None or request.query or learned.signature != _request_signature(request):
            return None
        _, last_time, last_beat = learned.values
        beat = learned.sent.heartbeat_time_of(request.body, learned.values)
        time = self._timestamp(0).encode()
        if beat is None or beat == last_beat or time < last_time:
            return None
        values = (str(self._store.version + 1).encode(), time, beat)
        try:
            learned.entry = self._store.renew(learned.entry, learned.stored.fill(values))
        except ConflictError:
            del self._known[request.path]
            return None
        learned.values = values
        answer = Response(200, encode_object(learned.entry.kind, learned.entry))
        return encoded_response(answer, negotiate(request).media_type)

    def learn(self, request: Request, write: HeartbeatWrite) -> None:
        """Learn from a write of the normal write path, if it was a heartbeat."""
        kind = (request.method, request.content_type, write.target.kind.resource)
        heartbeat = _HEARTBEATS.get((*kind, write.target.subresource))
        if heartbeat is None or request.query:
            return
        if negotiate(request) not in (PLAIN_JSON, PLAIN_PROTOBUF):
            return
        learned = _learn_heartbeat(heartbeat, request, write)
        if learned is None:
            return
        self._known[request.path] = learned
        if len(self._known) > MAX_HEARTBEATS:
            del self._known[next(iter(self._known))]


@dataclass(frozen=True, slots=True)
class HeartbeatWrite:
    """A write: its target, its field manager, and the entries before and after it."""

    target: Target
    manager: str
    before: Entry
    after: Entry


@dataclass(frozen=True, slots=True)
class HeartbeatKind:
    """A kind of heartbeat: the time is the field ``name`` of the objects that ``holders`` returns.

    ``holders`` takes a document and the one that was sent.
    """

    name: str
    holders: Callable[[Document, Document], Sequence[Any]]

    def time_of(self, document: Document, sent: Document) -> str:
        """Return the heartbeat time of a document; "" if there is none, or more than one."""
        found = self.times_of(document, sent)
        [beat] = found if len(found) == 1 else [""]
        return beat if _HEARTBEAT_TIME.fullmatch(beat.encode()) else ""

    def times_of(self, document: Document, sent: Document) -> set[str]:
        """Return all heartbeat times of a document."""
        return {str(each.get(self.name)) for each in self.holders(document, sent)}


def _spec(document: Document, _sent: Document) -> Sequence[Any]:
    return [document.get("spec") or {}]


def _conditions(document: Document, sent: Document) -> Sequence[Any]:
    """Return the conditions of the types that the sent document has."""
    types = [each.get("type") for each in _condition_list(sent)]
    return [each for each in _condition_list(document) if each.get("type") in types]


def _condition_list(document: Document) -> Sequence[Any]:
    """Return the conditions without the nulls that a patch may have."""
    conditions = (document.get("status") or {}).get("conditions") or ()
    return [each for each in conditions if each is not None]


_HEARTBEATS: Final[Mapping[tuple[str, str, str, str], HeartbeatKind]] = {
    ("PUT", JSON, "leases.coordination.k8s.io", ""): HeartbeatKind("renewTime", _spec),
    ("PATCH", STRATEGIC_PATCH, "nodes", "status"): HeartbeatKind("lastHeartbeatTime", _conditions),
}


def _request_signature(request: Request) -> tuple[str, ...]:
    return request.method, request.content_type, request.accept, request.user_agent


def _learn_heartbeat(
    heartbeat: HeartbeatKind, request: Request, write: HeartbeatWrite
) -> LearnedHeartbeat | None:
    """Return the heartbeat learned from a write; None if the write changed anything else."""
    sent = orjson.loads(request.body) or {}  # a patch may be null
    before, after = write.before.document(), write.after.document()
    beat = heartbeat.time_of(sent, sent)
    if (
        not beat
        or beat != heartbeat.time_of(after, sent)
        or not _has_same_managed_fields(sent, before)
    ):
        return None
    if beat in heartbeat.times_of(before, sent):
        return None  # the ownership of an unchanged field follows other rules
    ours, theirs = _last_entry(before, write), _last_entry(after, write)
    if ours is None or theirs is None:
        return None
    old = _values(write.before, ours, beat)
    new = _values(write.after, theirs, beat)
    forms = [
        _shape(heartbeat, write, document, sent, values)
        for document, values in ((before, old), (after, new), (sent, old))
    ]
    if forms[0] != forms[1]:
        return None
    if forms[1].fill(new) != write.after.raw or forms[2].fill(old) != request.body:
        return None
    return LearnedHeartbeat(write.after, _request_signature(request), forms[2], forms[1], new)


def _values(entry: Entry, manager: Mapping[str, Any], beat: str) -> HeartbeatValues:
    return str(entry.version).encode(), manager.get("time", "").encode(), beat.encode()


def _has_same_managed_fields(sent: Document, before: Document) -> bool:
    """Return whether the sent document has the stored managedFields, or none."""
    entries = (sent.get("metadata") or {}).get("managedFields")
    return entries is None or entries == before["metadata"].get("managedFields")


def _last_entry(document: Document, write: HeartbeatWrite) -> dict[str, Any] | None:
    """Return the last managedFields entry if it is the writer's; {} without entries; else None."""
    entries = (document.get("metadata") or {}).get("managedFields")
    if not entries:
        return {}
    last: dict[str, Any] = entries[-1]
    owner = (last.get("manager"), last.get("operation"), last.get("subresource", ""))
    return last if owner == (write.manager, "Update", write.target.subresource) else None


def _shape(
    heartbeat: HeartbeatKind,
    write: HeartbeatWrite,
    document: Document,
    sent: Document,
    values: HeartbeatValues,
) -> HeartbeatShape:
    """Return the shape of a document with placeholders for the values; changes it in place."""
    metadata = document.get("metadata") or {}
    if metadata.get("resourceVersion") == values[0].decode():
        metadata["resourceVersion"] = _VERSION
    entry = _last_entry(document, write)
    if entry:
        entry["time"] = _TIME
    for holder in heartbeat.holders(document, sent):
        holder[heartbeat.name] = _HEARTBEAT_MARK
    return HeartbeatShape(document)
