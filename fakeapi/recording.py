"""A world recorded from within: every write of its store, in the order of their versions.

    with record_world(world, "events.jsonl.gz"):
        ...

What is written is what ``reprieve record`` would write of it, with nothing lost between lists and
watches; a world that is restored or reset shows as a RELISTED and the differences.
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
    """Tells of a store what an informer with no delay would see, of all kinds but the noisy ones.

    It begins with what there is, and goes on until it is stopped.
    """

    def __init__(self, api: Api, tell: Tell) -> None:
        self._api = api
        self._tell = tell
        self._tracks: dict[str, Track] = {}
        self._stop: Callable[[], None] | None = None

    def begin(self) -> None:
        """Tell of what there is, and of every write from now on."""
        self._list()
        self._stop = self._api.store.tap(self._told)

    def resources(self) -> tuple[RecordedResource, ...]:
        """Return what is followed at present."""
        return tuple(_recorded(kind) for kind in _stored(self._api))

    def end(self) -> None:
        """Stop, after a bookmark for each resource of which anything is known."""
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
    """Record into a file while the block runs. Raises RecordingError."""
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
    """Return each resource's kind, that in which its objects are stored."""
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
