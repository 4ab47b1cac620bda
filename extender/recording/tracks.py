"""Resource tracks: the informer events of one resource as events of a recording.

A track keeps the last state of each object, so that a later list is recorded as its changes: first
deletions, then additions and modifications in the order of the list. An object that replaces one of
the same name but another UID is recorded as a deletion and an addition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import orjson

from extender.recording.format import (
    Document,
    EventType,
    Metadata,
    RecordedResource,
    version_object,
)

EventCallback: TypeAlias = Callable[[EventType, str, Document], None]
"""Receives an event: its type, the name of the resource, the object."""


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
        self._tell = on_event
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
        if known is not None and _is_other_object(known, item):
            self.remove(known)
            known = None
        self._record("ADDED" if known is None else "MODIFIED", item)

    def remove(self, item: ObservedObject) -> None:
        """Record that an object was deleted."""
        self._known.pop(item.key, None)
        self._emit("DELETED", item)

    def bookmark(self, resource_version: str) -> None:
        """Record the resource version that the cache has reached."""
        self._tell("BOOKMARK", self._resource.name, version_object(resource_version))

    def relisted(self, resource_version: str) -> None:
        """Record that the following changes were found by a relist."""
        self._tell("RELISTED", self._resource.name, version_object(resource_version))

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
        of = self._resource
        head = {"apiVersion": of.api_version, "kind": of.kind}
        self._tell(kind, of.name, {**head, **item.document()})


def _is_other_object(previous: ObservedObject, item: ObservedObject) -> bool:
    return previous.metadata.uid != item.metadata.uid
