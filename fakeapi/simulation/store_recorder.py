"""Records a world from its store: every write, in the order of resource versions.

    with record_world(world, "events.jsonl.gz"):
        ...

The recording is the one that ``reprieve record`` would write, without writes missed between lists
and watches. A restore or reset of the world is recorded as RELISTED and the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from extender.recording.event_writer import (
    REDACTED,
    EventCallback,
    ObservedObject,
    RecordingWriter,
    RedactionRules,
    ResourceTrack,
    observe_object,
)
from extender.recording.files import RecordingFile
from extender.recording.format import RecordedResource
from extender.recording.resource_selection import EXCLUDED_FROM_ALL
from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.objects.version_conversion import conversion_of
from fakeapi.apiserver.store.object_store import Entry, StoreEvent
from fakeapi.simulation.world import World


class StoreRecorder:
    """Emits the events that informers without latency would see, except for the noisy kinds.

    It starts with the existing objects and continues until :meth:`end`.
    """

    def __init__(self, api: Api, emit: EventCallback) -> None:
        self._api = api
        self._emit = emit
        self._tracks: dict[str, ResourceTrack] = {}
        self._stop: Callable[[], None] | None = None

    def begin(self) -> None:
        """Emit the existing objects, and every later write."""
        self._list()
        self._stop = self._api.store.tap(self._on_event)

    def resources(self) -> tuple[RecordedResource, ...]:
        """Return the resources that are currently recorded."""
        return tuple(_recorded(kind) for kind in _stored(self._api))

    def end(self) -> None:
        """Stop, and emit a bookmark for each resource that has had events."""
        if self._stop is not None:
            self._stop()
        for track in self._tracks.values():
            track.bookmark(str(self._api.store.version))

    def _on_event(self, event: StoreEvent | None) -> None:
        if event is None:
            for track in self._tracks.values():
                track.relisted(str(self._api.store.version))
            self._list()
        elif event.kind.resource not in EXCLUDED_FROM_ALL:
            track = self._track(event.kind)
            if event.type == "DELETED":
                track.remove(_observed(event.entry))
            else:
                track.upsert(_observed(event.entry))

    def _list(self) -> None:
        for kind in _stored(self._api):
            entries = self._api.store.entries(kind)
            if entries or kind.resource in self._tracks:
                self._track(kind).replace([_observed(entry) for entry in entries])

    def _track(self, kind: ResourceInfo) -> ResourceTrack:
        track = self._tracks.get(kind.resource)
        if track is None:
            track = self._tracks[kind.resource] = ResourceTrack(_recorded(kind), self._emit)
        return track


@contextmanager
def record_world(
    world: World, path: str, redaction: RedactionRules = REDACTED
) -> Iterator[RecordingFile]:
    """Record into a file until the block ends. Raises RecordingError."""
    with RecordingFile(path) as file:
        writer = RecordingWriter(file.write, world.clock, redaction)
        follower = StoreRecorder(world.api, writer.write_event)
        writer.begin(world.api.release.name, follower.resources())
        follower.begin()
        try:
            yield file
        finally:
            follower.end()


def _stored(api: Api) -> list[ResourceInfo]:
    """Return the storage version's kind of each resource."""
    found: dict[str, ResourceInfo] = {}
    for kind in api.kinds.all:
        listed = {"list", "watch"} <= set(kind.verbs) and kind.resource not in EXCLUDED_FROM_ALL
        if listed and conversion_of(kind) is None:
            found.setdefault(kind.resource, kind)
    return list(found.values())


def _recorded(kind: ResourceInfo) -> RecordedResource:
    return RecordedResource(kind.resource, kind.api_version, kind.kind, namespaced=kind.namespaced)


def _observed(entry: Entry) -> ObservedObject:
    return observe_object(entry.kind.head + entry.raw[1:])
