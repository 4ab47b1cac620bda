"""Records a world from its store: every write, in the order of resource versions.

    with record_world(world, "events.jsonl.gz"):
        ...

The recording is the one that ``reprieve record`` would write, without writes missed between lists
and watches. A restore or reset of the world is recorded as RELISTED and the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from extender.recording.choosing import UNTOLD
from extender.recording.files import RecordingFile
from extender.recording.format import RecordedResource
from extender.recording.tape import DISCREET, Discretion, Tape
from extender.recording.tracks import Sighting, Tell, Track, sight
from fakeapi.api import Api
from fakeapi.api.conversions import conversion_of
from fakeapi.kinds import Kind
from fakeapi.store import Entry, Event
from fakeapi.world import World


class StoreFollower:
    """Emits the events that informers without latency would see, except for the noisy kinds.

    It starts with the existing objects and continues until :meth:`end`.
    """

    def __init__(self, api: Api, tell: Tell) -> None:
        self._api = api
        self._tell = tell
        self._tracks: dict[str, Track] = {}
        self._stop: Callable[[], None] | None = None

    def begin(self) -> None:
        """Emit the existing objects, and every later write."""
        self._list()
        self._stop = self._api.store.tap(self._told)

    def resources(self) -> tuple[RecordedResource, ...]:
        """Return the resources that are currently recorded."""
        return tuple(_recorded(kind) for kind in _stored(self._api))

    def end(self) -> None:
        """Stop, and emit a bookmark for each resource that has had events."""
        if self._stop is not None:
            self._stop()
        for track in self._tracks.values():
            track.bookmark(str(self._api.store.version))

    def _told(self, event: Event | None) -> None:
        if event is None:
            for track in self._tracks.values():
                track.relisted(str(self._api.store.version))
            self._list()
        elif event.kind.resource not in UNTOLD:
            track = self._track(event.kind)
            if event.type == "DELETED":
                track.remove(_sighting(event.entry))
            else:
                track.upsert(_sighting(event.entry))

    def _list(self) -> None:
        for kind in _stored(self._api):
            entries = self._api.store.entries(kind)
            if entries or kind.resource in self._tracks:
                self._track(kind).replace([_sighting(entry) for entry in entries])

    def _track(self, kind: Kind) -> Track:
        track = self._tracks.get(kind.resource)
        if track is None:
            track = self._tracks[kind.resource] = Track(_recorded(kind), self._tell)
        return track


@contextmanager
def record_world(
    world: World, path: str, discretion: Discretion = DISCREET
) -> Iterator[RecordingFile]:
    """Record into a file until the block ends. Raises RecordingError."""
    with RecordingFile(path) as file:
        tape = Tape(file.write, world.clock, discretion)
        follower = StoreFollower(world.api, tape.tell)
        tape.begin(world.api.release.name, follower.resources())
        follower.begin()
        try:
            yield file
        finally:
            follower.end()


def _stored(api: Api) -> list[Kind]:
    """Return the storage version's kind of each resource."""
    found: dict[str, Kind] = {}
    for kind in api.kinds.all:
        listed = {"list", "watch"} <= set(kind.verbs) and kind.resource not in UNTOLD
        if listed and conversion_of(kind) is None:
            found.setdefault(kind.resource, kind)
    return list(found.values())


def _recorded(kind: Kind) -> RecordedResource:
    return RecordedResource(kind.resource, kind.api_version, kind.kind, namespaced=kind.namespaced)


def _sighting(entry: Entry) -> Sighting:
    return sight(entry.kind.head + entry.raw[1:])
