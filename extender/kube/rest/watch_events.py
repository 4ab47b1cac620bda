"""Watch events, decoded from the lines of a watch.

Each line is one frame `{"type": ..., "object": ...}`. ADDED, MODIFIED and DELETED have an
object, BOOKMARK has only the resourceVersion that the watch has reached, ERROR has a Status and is
the last. A broken watch is resumed at the version of the last event, bookmarks included, without
losing or repeating an event.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from extender.kube.rest.api_errors import MalformedError, NestedTooDeeplyError, error_from_status
from extender.kube.rest.transport import LineTooLongError, Request, Stream

_CHANGES = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One frame of a watch. `type` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    resource_version: str
    object: msgspec.Raw

    @property
    def ends_initial_events(self) -> bool:
        """Whether this is the bookmark that ends the initial events of a stream."""
        if self.type != "BOOKMARK":
            return False
        try:
            marks = _bookmarks.decode(self.object).metadata.annotations or {}
        except msgspec.ValidationError:
            return False
        return marks.get("k8s.io/initial-events-end") == "true"


class EventStream:
    """A running watch: an iterator of its events, in the server's order, until the server ends it.

    Raises ApiError for an ERROR frame, TransportError when the connection breaks, and
    MalformedError for a frame that cannot be decoded: as a resumed watch would read the same frame
    again, a new list is needed.
    """

    def __init__(self, request: Request, stream: Stream) -> None:
        self._request = request
        self._lines = aiter(stream)

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> WatchEvent:
        try:
            frame = _frames.decode(await anext(self._lines))
            if frame.type == "ERROR":
                raise error_from_status(self._request, frame.object)
            return _event(frame)
        except (LineTooLongError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise MalformedError(f"{self._request}: unreadable watch frame: {error}") from error
        except RecursionError:
            raise NestedTooDeeplyError(self._request) from None


class _WatchFrame(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _EventObjectMeta(msgspec.Struct, rename="camel"):
    resource_version: str


class _EventObject(msgspec.Struct):
    metadata: _EventObjectMeta


class _BookmarkMeta(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta


_frames = msgspec.json.Decoder(_WatchFrame)
_objects = msgspec.json.Decoder(_EventObject)
_bookmarks = msgspec.json.Decoder(_Bookmark)


def _event(frame: _WatchFrame) -> WatchEvent:
    version = _objects.decode(frame.object).metadata.resource_version
    if frame.type not in _CHANGES or not version:
        raise msgspec.ValidationError(f"type {frame.type!r}, resourceVersion {version!r}")
    return WatchEvent(frame.type, version, frame.object)
