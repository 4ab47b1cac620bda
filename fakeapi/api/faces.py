"""Representations: one answer in the format that the client requests.

The API answers with the JSON of objects. A :class:`Representation` converts it to the negotiated
format: a Table, metadata only, YAML, or indented JSON. Clients without special requests get the
bytes unchanged, at no cost. Errors (``Status``) are never converted.

In a watch the object of each event is converted by itself; only the first Table defines columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Final

import orjson
import yaml

from fakeapi.api.cells.reading import parse_time
from fakeapi.api.crds.columns import custom_table
from fakeapi.api.errors import not_acceptable
from fakeapi.api.messages import JSON, Request, Response
from fakeapi.api.negotiation import (
    OFFERED,
    PARTIAL,
    PARTIAL_LIST,
    PLAIN,
    TABLE,
    YAML,
    Representation,
    negotiate,
)
from fakeapi.api.outlines import event_line, outline, outline_event
from fakeapi.api.partials import partial_event, partial_list, partial_object
from fakeapi.api.tables import OwnColumns, TableOptions, parse_table_options, table
from fakeapi.api.watching import Watch
from fakeapi.kinds import Kind
from fakeapi.store import Document

_STREAMED: Final = tuple(
    f"{media_type};stream=watch" for media_type in OFFERED if media_type != YAML
)
_ERROR: Final = b'{"type":"ERROR"'
_REMEMBERED_EVENTS: Final = 256


@dataclass(frozen=True, slots=True)
class Face:
    """The representation of one request's answer; ``timestamp`` returns the time, for ages."""

    representation: Representation
    options: TableOptions
    timestamp: Callable[[int], str]

    def dress(self, answer: Response | Watch) -> Response | Watch:
        """Return the answer in this representation; raise StatusError (406) if it has none."""
        if isinstance(answer, Response):
            return self._dress_response(answer)
        if self.representation.media_type == YAML:
            raise not_acceptable(_STREAMED)
        if self.representation.shape == TABLE:
            answer.show(_TableEvents(self))
        elif self.representation.shape == PARTIAL:
            answer.show(partial(partial_event, version=self.representation.version))
        return answer

    def of(self, kind: Kind) -> Face:
        """Return the representation for a kind, whose Tables may have custom columns."""
        if kind.custom is None or self.representation.shape != TABLE:
            return self
        columns = OwnColumns(kind, custom_table(kind.custom))
        return replace(self, options=replace(self.options, own=columns))

    def now(self) -> int:
        """Return the time in seconds since 1970."""
        return parse_time(self.timestamp(0)) or 0

    def _dress_response(self, answer: Response) -> Response:
        if self.representation == PLAIN or answer.content_type != JSON:
            return answer
        body = self._reshape(answer.body)
        if self.representation.media_type == YAML:
            return replace(answer, body=_yaml(orjson.loads(body)), content_type=YAML)
        if self.representation.pretty:
            body = orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2)
        return replace(answer, body=body)

    def _reshape(self, body: bytes) -> bytes:
        shape, version = self.representation.shape, self.representation.version
        if shape == TABLE:
            return _tabulate(body, self.options, self.now())
        if shape == PARTIAL:
            return partial_object(body, version)
        return partial_list(body, version) if shape == PARTIAL_LIST else body


def choose_face(request: Request, timestamp: Callable[[int], str]) -> Face:
    """Return the representation of the answer to a request; raise StatusError (400, 406)."""
    representation = negotiate(request, *OFFERED)
    options = TableOptions()
    if representation.shape == TABLE:
        options = parse_table_options(request.query, representation.version)
    return Face(representation, options, timestamp)


class _TableEvents:
    """Converts the lines of one watch into Tables, one after the other."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._columns_told = False

    def __call__(self, line: bytes) -> bytes:
        if line.startswith(_ERROR):
            return line
        options, now = self._face.options, self._face.now()
        if self._columns_told:
            return _later_event(line, options, now)
        self._columns_told = True
        event = outline_event(line)
        return event_line(event.type, orjson.dumps(table(bytes(event.object), options, now)))


@lru_cache(maxsize=_REMEMBERED_EVENTS)
def _later_event(line: bytes, options: TableOptions, now: int) -> bytes:
    """Return a line without column definitions; cached, because watches share events."""
    event = outline_event(line)
    shown = table(bytes(event.object), options, now) | {"columnDefinitions": None}
    return event_line(event.type, orjson.dumps(shown))


def _tabulate(body: bytes, options: TableOptions, now: int) -> bytes:
    if outline(body).kind == "Status":
        return body
    return orjson.dumps(table(body, options, now)) + b"\n"


def _yaml(document: Document) -> bytes:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: bytes = yaml.dump(document, Dumper=dumper, encoding="utf-8", allow_unicode=True)
    return text
