"""Representations: one answer in the format that the client requests.

The API answers with the JSON of objects. A :class:`Representation` converts it to the negotiated
format: a Table, metadata only, YAML, protobuf, or indented JSON. Clients without special requests
get the bytes unchanged, at no cost. Errors (``Status``) are never converted to other documents.

In a watch the object of each event is converted by itself; only the first Table defines columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Final

import orjson
import yaml

from fakeapi.apiserver.kinds import ResourceInfo
from fakeapi.apiserver.printers.columns import custom_table
from fakeapi.apiserver.printers.human_readable import parse_time
from fakeapi.apiserver.printers.table import (
    CustomColumns,
    TableOptions,
    build_table,
    parse_table_options,
)
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.watch.watch_cursor import Watch
from fakeapi.apiserver.wire.errors import StatusError, not_acceptable
from fakeapi.apiserver.wire.http_messages import JSON, PROTOBUF, Request, Response
from fakeapi.apiserver.wire.negotiation import (
    OFFERED,
    PARTIAL,
    PARTIAL_LIST,
    PLAIN_JSON,
    TABLE,
    WITHOUT_PROTOBUF,
    YAML,
    MediaTypeOptions,
    negotiate,
    negotiate_error,
    partial_event,
    partial_list,
    partial_object,
)
from fakeapi.apiserver.wire.protobuf_encoder import encode_frame, encode_protobuf
from fakeapi.apiserver.wire.raw_json import decode_raw_event, decode_raw_object, encode_watch_line

_STREAMED: Final = tuple(
    f"{media_type};stream=watch" for media_type in OFFERED if media_type != YAML
)
_ERROR: Final = b'{"type":"ERROR"'
_REMEMBERED_EVENTS: Final = 256


@dataclass(frozen=True, slots=True)
class Representation:
    """The representation of one request's answer; ``timestamp`` returns the time, for ages."""

    media_type_options: MediaTypeOptions
    options: TableOptions
    timestamp: Callable[[int], str]

    def convert(self, answer: Response | Watch) -> Response | Watch:
        """Return the answer in this representation; raise StatusError (406) if it has none."""
        if isinstance(answer, Response):
            return self._convert_response(answer)
        if self.media_type_options.media_type == YAML:
            raise not_acceptable(_STREAMED)
        if self.media_type_options.convert_to == TABLE:
            answer.add_transform(TableEventConverter(self))
        elif self.media_type_options.convert_to == PARTIAL:
            answer.add_transform(partial(partial_event, version=self.media_type_options.version))
        if self.media_type_options.media_type == PROTOBUF:
            answer.content_type = f"{PROTOBUF};stream=watch"
            answer.add_transform(encode_frame)
        return answer

    def for_kind(self, kind: ResourceInfo) -> Representation:
        """Return the representation for a kind, whose Tables may have custom columns."""
        if kind.custom is None or self.media_type_options.convert_to != TABLE:
            return self
        columns = CustomColumns(kind, custom_table(kind.custom))
        return replace(self, options=replace(self.options, custom_columns=columns))

    def now(self) -> int:
        """Return the time in seconds since 1970."""
        return parse_time(self.timestamp(0)) or 0

    def _convert_response(self, answer: Response) -> Response:
        if self.media_type_options == PLAIN_JSON or answer.content_type != JSON:
            return answer
        answer = answer.joined
        body = self._convert_body(answer.body)
        if self.media_type_options.media_type != JSON:
            return encoded_response(replace(answer, body=body), self.media_type_options.media_type)
        if self.media_type_options.pretty:
            body = orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2)
        return replace(answer, body=body)

    def _convert_body(self, body: bytes) -> bytes:
        shape, version = self.media_type_options.convert_to, self.media_type_options.version
        if shape == TABLE:
            return _table_body(body, self.options, self.now())
        if shape == PARTIAL:
            return partial_object(body, version)
        return partial_list(body, version) if shape == PARTIAL_LIST else body


def encoded_response(answer: Response, media_type: str) -> Response:
    """Return an answer in JSON in another type; one that has no protobuf message stays JSON."""
    if media_type == JSON:
        return answer
    if media_type == YAML:
        return replace(answer, body=_yaml(orjson.loads(answer.body)), content_type=YAML)
    body = encode_protobuf(answer.body)
    return answer if body is None else replace(answer, body=body, content_type=PROTOBUF)


def error_response(error: StatusError, accept: str) -> Response:
    """Return the response to send for an error, in the type that the client accepts."""
    return encoded_response(error.response(), negotiate_error(accept))


def choose_representation(
    request: Request, timestamp: Callable[[int], str], kind: ResourceInfo
) -> Representation:
    """Return the representation of the answer for a kind; raise StatusError (400, 406)."""
    representation = negotiate(request, OFFERED if kind.custom is None else WITHOUT_PROTOBUF)
    options = TableOptions()
    if representation.convert_to == TABLE:
        options = parse_table_options(request.query, representation.version)
    return Representation(representation, options, timestamp)


class TableEventConverter:
    """Converts the lines of one watch into Tables, one after the other."""

    def __init__(self, representation: Representation) -> None:
        self._representation = representation
        self._columns_sent = False

    def __call__(self, line: bytes) -> bytes:
        """Return the line with its object as a Table; only the first Table has columns."""
        if line.startswith(_ERROR):
            return line
        options, now = self._representation.options, self._representation.now()
        if self._columns_sent:
            return _later_event(line, options, now)
        self._columns_sent = True
        event = decode_raw_event(line)
        return encode_watch_line(
            event.type, orjson.dumps(build_table(bytes(event.object), options, now))
        )


@lru_cache(maxsize=_REMEMBERED_EVENTS)
def _later_event(line: bytes, options: TableOptions, now: int) -> bytes:
    """Return a line without column definitions; cached, because watches share events."""
    event = decode_raw_event(line)
    table = build_table(bytes(event.object), options, now) | {"columnDefinitions": None}
    return encode_watch_line(event.type, orjson.dumps(table))


def _table_body(body: bytes, options: TableOptions, now: int) -> bytes:
    if decode_raw_object(body).kind == "Status":
        return body
    return orjson.dumps(build_table(body, options, now)) + b"\n"


def _yaml(document: Document) -> bytes:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: bytes = yaml.dump(document, Dumper=dumper, encoding="utf-8", allow_unicode=True)
    return text
