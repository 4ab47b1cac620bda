"""The recording writer: encodes the informer events of resources as timed lines, and redacts them.

Until :meth:`RecordingWriter.begin`, events are buffered, so that a recording begins with one state
of all resources: at time 0 all listed objects, then the changes made while others were listed.

A resource track keeps the last state of each object of one resource, so that a later list is
recorded as its changes: first deletions, then additions and modifications in the order of the list.
An object that replaces one of the same name but another UID is recorded as a deletion and an
addition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec
import orjson

from extender.kube.rest.clock import Clock
from extender.recording.format import (
    TOO_DEEP,
    Document,
    EventType,
    FormatError,
    Header,
    Metadata,
    RecordedResource,
    encode_event,
    encode_header,
    format_start,
    version_object,
)
from extender.recording.redaction import REDACTED_FIELDS, keep_all, redact

Write: TypeAlias = Callable[[bytes], None]
EventCallback: TypeAlias = Callable[[EventType, str, Document], None]
"""Receives an event: its type, the name of the resource, the object."""


@dataclass(frozen=True, slots=True)
class RedactionRules:
    """The redaction of objects by ``redact``; ``left_out`` names the removed values."""

    redact: Callable[[Document], Document]
    left_out: tuple[str, ...]


REDACTED: Final = RedactionRules(redact, REDACTED_FIELDS)
UNREDACTED: Final = RedactionRules(keep_all, ())


class RecordingWriter:
    """Writes one recording with ``write``, timed by ``clock``; ``lines`` counts its events."""

    def __init__(self, write: Write, clock: Clock, redaction: RedactionRules) -> None:
        self._write = write
        self._clock = clock
        self._redaction = redaction
        self._start = clock.monotonic()
        self._pending: list[tuple[EventType, str, Document]] | None = []
        self.lines = 0

    def begin(
        self, server: str, resources: Sequence[RecordedResource], namespace: str = ""
    ) -> None:
        """Write the header and the buffered events. Raise the errors of :meth:`write_event`."""
        left_out = self._redaction.left_out
        start = format_start(self._clock.now_ns())
        self._start = self._clock.monotonic()
        self._write(encode_header(Header(start, server, namespace, left_out, tuple(resources))))
        pending, self._pending = self._pending or [], None
        for event in sorted(pending, key=lambda event: event[0] != "LISTED"):
            self._put(0, *event)

    @property
    def has_begun(self) -> bool:
        """Whether the header has been written."""
        return self._pending is None

    def write_event(self, kind: EventType, resource: str, document: Document) -> None:
        """Write one event; ``document`` may be changed.

        Raise FormatError with the object's name if it is nested too deeply, and the errors of
        ``write``.
        """
        if self._pending is not None:
            self._pending.append((kind, resource, document))
            return
        # Rounded to microseconds: a clock in floats is not reliable below that.
        at_ns = round((self._clock.monotonic() - self._start) * 10**6) * 1000
        self._put(at_ns, kind, resource, document)

    def _put(self, at_ns: int, kind: EventType, resource: str, document: Document) -> None:
        try:
            line = encode_event(at_ns, kind, resource, self._redaction.redact(document))
        except (FormatError, RecursionError):
            raise FormatError(f"{resource} {_key(document)}: {TOO_DEEP}") from None
        self._write(line)
        self.lines += 1


def _key(document: Document) -> str:
    metadata = document["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """One object as observed; ``raw`` is its JSON."""

    metadata: Metadata
    raw: bytes

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name

    def document(self) -> Document:
        """Return a new decoded copy."""
        document: Document = orjson.loads(self.raw)
        return document


class _ObjectWithMetadata(msgspec.Struct):
    metadata: Metadata


_metadata_decoder = msgspec.json.Decoder(_ObjectWithMetadata)


def observe_object(raw: msgspec.Raw | bytes) -> ObservedObject:
    """Decode the metadata of an object, and keep its JSON. Raise msgspec.DecodeError."""
    return ObservedObject(_metadata_decoder.decode(raw).metadata, bytes(raw))


class ResourceTrack:
    """The store of one resource's reflector; ``on_event`` is called with each event."""

    def __init__(self, resource: RecordedResource, on_event: EventCallback) -> None:
        self._resource = resource
        self._on_event = on_event
        self._known: dict[tuple[str, str], ObservedObject] = {}
        self._listed = False

    def replace(self, items: Sequence[ObservedObject]) -> None:
        """Record a list: the first as a whole, later ones as their changes."""
        if self._listed:
            self._record_differences(items)
        else:
            for item in items:
                self._record("LISTED", item)
        self._listed = True

    def upsert(self, item: ObservedObject) -> None:
        """Record that an object was added or modified."""
        known = self._known.get(item.key)
        if known is not None and known.metadata.uid != item.metadata.uid:
            self.remove(known)
            known = None
        self._record("ADDED" if known is None else "MODIFIED", item)

    def remove(self, item: ObservedObject) -> None:
        """Record that an object was deleted."""
        self._known.pop(item.key, None)
        self._emit("DELETED", item)

    def bookmark(self, resource_version: str) -> None:
        """Record the resource version that the cache has reached."""
        self._on_event("BOOKMARK", self._resource.name, version_object(resource_version))

    def relisted(self, resource_version: str) -> None:
        """Record that the following changes were found by a relist."""
        self._on_event("RELISTED", self._resource.name, version_object(resource_version))

    def _record_differences(self, items: Sequence[ObservedObject]) -> None:
        present = {item.key for item in items}
        for known in [each for key, each in self._known.items() if key not in present]:
            self.remove(known)
        for item in items:
            before = self._known.get(item.key)
            if before is None or before.metadata != item.metadata:
                self.upsert(item)

    def _record(self, kind: EventType, item: ObservedObject) -> None:
        self._known[item.key] = item
        self._emit(kind, item)

    def _emit(self, kind: EventType, item: ObservedObject) -> None:
        resource = self._resource
        head = {"apiVersion": resource.api_version, "kind": resource.kind}
        self._on_event(kind, resource.name, {**head, **item.document()})
