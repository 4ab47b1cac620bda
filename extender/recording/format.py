"""The format of recordings: JSON lines, a header and then one event per line.

    {"format":"reprieve-recording","version":1,"server":"v1.37.0","start":"2026-01-01T00:00:00Z",
     "namespace":"","leftOut":["secret data",…],"resources":[{"name":"replicasets.apps",…},…]}
    {"t":0,"type":"LISTED","resource":"pods","object":{…}}
    {"t":1250000000,"type":"MODIFIED","resource":"pods","object":{…}}

``t`` is in nanoseconds since the start, by a monotonic clock. Types:

    LISTED    the object is in the first list of its resource
    ADDED     the object was added
    MODIFIED  the object was modified; this is its new state
    DELETED   the object was deleted; this is its last state
    BOOKMARK  there are no further changes up to this version
    RELISTED  the watch could not be resumed and the resource was listed again; the missed changes
              follow as ADDED, MODIFIED and DELETED

The object of a BOOKMARK or a RELISTED has only ``metadata.resourceVersion``; all others have their
``apiVersion`` and ``kind``. Readers ignore unknown fields; a change that an old reader would
misunderstand gets a new version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
import orjson
from msgspec import Meta, Struct, field

from extender.kube.decoders.object_meta import OwnerReference, parse_time
from extender.kube.decoders.typed_decoder import with_field_path
from policies.kubernetes.integers import parse_integer

NAME: Final = "reprieve-recording"
VERSION: Final = 1

TOO_DEEP: Final = "nested too deeply; expected no more levels than JSON is written with: 254"
"""The error of an object that no line can hold, and of a line with such an object."""

MAX_OFFSET_NS: Final = 3660 * 86_400 * 10**9
"""Ten years: a later time is invalid."""

_START: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", re.ASCII)

EventType = Literal["LISTED", "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "RELISTED"]
Document: TypeAlias = dict[str, Any]
"""One API object as parsed JSON, of any kind."""


class FormatError(ValueError):
    """A line is not valid, or an object cannot be encoded as one; the text has the reason."""


class RecordedResource(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A recorded resource; ``name`` is its plural with its group: ``replicasets.apps``.

    ``only`` is the name of the single object that is recorded, "" for all.
    """

    name: str
    api_version: str
    kind: str
    namespaced: bool = False
    only: str = ""


class Header(Struct, frozen=True, rename="camel"):
    """The first line. ``start`` is RFC 3339; ``namespace`` "" means all namespaces."""

    start: str
    server: str = ""
    namespace: str = ""
    left_out: tuple[str, ...] = ()
    resources: tuple[RecordedResource, ...] = ()
    format: str = NAME
    version: int = VERSION

    @property
    def start_ns(self) -> int:
        """The start in nanoseconds since the epoch."""
        whole, _, fraction = self.start.removesuffix("Z").partition(".")
        return parse_time(f"{whole}Z") + (parse_integer(fraction[:9].ljust(9, "0")) or 0)


class Metadata(Struct, frozen=True, rename="camel"):
    """The metadata that is decoded of every object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class _ObjectHeader(Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: Metadata = field(default_factory=Metadata)


class _Line(Struct, frozen=True):
    t: Annotated[int, Meta(ge=0, le=MAX_OFFSET_NS)]
    type: EventType
    resource: str
    object: msgspec.Raw


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """One line: the time in nanoseconds since the start, the type, the resource, and the object.

    ``raw`` is the object's JSON; ``line`` is the number of the line, 0 if not from a file.
    """

    at_ns: int
    type: EventType
    resource: str
    api_version: str
    kind: str
    metadata: Metadata
    raw: bytes
    line: int = 0

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    @property
    def is_object_event(self) -> bool:
        """Whether the event is about an object."""
        return self.type not in ("BOOKMARK", "RELISTED")

    def document(self) -> Document:
        """Return a new decoded copy of the object."""
        document: Document = orjson.loads(self.raw)
        return document


_MAX_NESTING: Final = 254  # of a line
_NOT_BRACKETS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[^]{}[]')

_line_decoder = msgspec.json.Decoder(_Line)
_object_decoder = msgspec.json.Decoder(_ObjectHeader)
_header_decoder = msgspec.json.Decoder(Header)


def format_start(epoch_ns: int) -> str:
    """Format a time in epoch nanoseconds as the start of a header, to the nanosecond."""
    seconds, fraction = divmod(epoch_ns, 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09}Z"


def encode_header(header: Header) -> bytes:
    """Encode the first line."""
    first = {"format": header.format, "version": header.version}
    return msgspec.json.encode(first | msgspec.to_builtins(header)) + b"\n"


def encode_event(at_ns: int, kind: EventType, resource: str, document: Document) -> bytes:
    """Encode one event. Raise FormatError if the object is nested too deeply."""
    line = {"t": at_ns, "type": kind, "resource": resource, "object": document}
    try:
        return orjson.dumps(line) + b"\n"
    except orjson.JSONEncodeError:
        raise FormatError(TOO_DEEP) from None


def version_object(resource_version: str) -> Document:
    """Return the object of a BOOKMARK or a RELISTED."""
    return {"metadata": {"resourceVersion": resource_version}}


def decode_header(line: bytes) -> Header:
    """Decode the first line. Raise FormatError."""
    try:
        raw = orjson.loads(line)
    except orjson.JSONDecodeError:
        raw = None
    if not isinstance(raw, dict) or raw.get("format") != NAME:
        raise FormatError(f'expected the header of a recording: {{"format":"{NAME}",…}}')
    version = raw.get("version")
    if not isinstance(version, int) or version < 1 or version > VERSION:
        raise FormatError(f"version {version!r} of the format; expected at most {VERSION}")
    if _nests_too_deeply(line):
        raise FormatError(TOO_DEEP)
    try:
        header = _header_decoder.decode(line)
    except msgspec.ValidationError as error:
        raise FormatError(with_field_path(str(error))) from None
    if not _is_start_time(header.start):
        expected = "expected a time such as 2026-01-02T15:04:05.000000000Z"
        raise FormatError(f"start: {header.start!r}; {expected}")
    return header


def _is_start_time(text: str) -> bool:
    if _START.fullmatch(text) is None:
        return False
    try:
        datetime.fromisoformat(text[:19])
    except ValueError:
        return False
    return True


def _nests_too_deeply(line: bytes) -> bool:
    """Return whether a line exceeds the maximum nesting, independent of a decoder's own limit."""
    brackets = _NOT_BRACKETS.sub(b"", line)
    levels = accumulate(1 if each in b"{[" else -1 for each in brackets)
    return max(levels, default=0) > _MAX_NESTING


def decode_event(line: bytes, number: int = 0) -> RecordedEvent:
    """Decode any other line. Raise FormatError."""
    try:
        read = _line_decoder.decode(line)
        raw = bytes(read.object)
        value = orjson.loads(raw)  # validates the JSON of fields that the decoder above skips
        head = _object_decoder.decode(raw)
        if raw.count(b"{") + raw.count(b"[") >= _MAX_NESTING:
            orjson.dumps([value])
    except msgspec.ValidationError as error:
        raise FormatError(with_field_path(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, orjson.JSONDecodeError) as error:
        problem = TOO_DEEP if _nests_too_deeply(line) else f"not JSON: {error}"
        raise FormatError(problem) from None
    except (RecursionError, orjson.JSONEncodeError):
        raise FormatError(TOO_DEEP) from None
    described = head.api_version, head.kind, head.metadata
    event = RecordedEvent(read.t, read.type, read.resource, *described, raw, number)
    if event.is_object_event and not (event.api_version and event.kind and event.metadata.name):
        raise FormatError("object: expected an apiVersion, a kind and a metadata.name")
    return event
