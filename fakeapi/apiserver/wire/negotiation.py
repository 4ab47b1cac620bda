"""Content negotiation: the format that a client requests for an answer.

An ``Accept`` header is a list of clauses, each a media type with parameters. Clauses are ordered by
quality ``q``, then more specific ones first, then by position. A clause may request another
document than the object itself:

    application/json;as=Table;v=v1;g=meta.k8s.io,application/json      kubectl get
    application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io   a metadata informer

A clause that cannot be served is skipped. Custom resources have no protobuf, except for their
metadata; Tables have none at all. An error is answered in the best type of the clauses that request
no other document, and in JSON if there is none.

Sources: k8s.io/apiserver/pkg/endpoints/handlers (negotiation, and asPartialObjectMetadata in
response.go), munnerz/goautoneg.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import msgspec

from fakeapi.apiserver.wire.errors import StatusError, not_acceptable
from fakeapi.apiserver.wire.http_messages import JSON, PROTOBUF, Request
from fakeapi.apiserver.wire.raw_json import decode_raw_event, decode_raw_object, encode_watch_line

YAML: Final = "application/yaml"
OFFERED: Final = (JSON, YAML, PROTOBUF)
WITHOUT_PROTOBUF: Final = (JSON, YAML)

TABLE: Final = "Table"
PARTIAL: Final = "PartialObjectMetadata"
PARTIAL_LIST: Final = "PartialObjectMetadataList"

_META_GROUP: Final = "meta.k8s.io"
_META_VERSIONS: Final = ("v1", "v1beta1")
_BROWSERS: Final = ("curl", "Wget", "Mozilla/5.0")
_CACHED_LENGTH: Final = 512
_CACHE_SIZE: Final = 128
_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")


@dataclass(frozen=True, slots=True)
class AcceptClause:
    """One media type of an Accept header with its parameters, without ``q``."""

    media_type: str
    parameters: Mapping[str, str]
    quality: float

    def group_version_kind(self) -> tuple[str, str, str]:
        """Return group, version and kind of the requested document; empty for the object's own."""
        group, version, kind = (self.parameters.get(name, "") for name in ("g", "v", "as"))
        return group, version, kind


@dataclass(frozen=True, slots=True)
class MediaTypeOptions:
    """The negotiated format of an answer.

    ``convert_to`` is ``Table``, ``PartialObjectMetadata``, ``PartialObjectMetadataList``, or "" for
    the objects themselves; ``version`` is the version of that kind in meta.k8s.io.
    """

    media_type: str = JSON
    convert_to: str = ""
    version: str = "v1"
    pretty: bool = False


PLAIN_JSON: Final = MediaTypeOptions()
PLAIN_PROTOBUF: Final = MediaTypeOptions(PROTOBUF)


def negotiate(request: Request, objects: tuple[str, ...] = OFFERED) -> MediaTypeOptions:
    """Return the format of the answer; raise StatusError (406) if the client accepts none.

    ``objects`` are the media types of objects that are not converted to other documents.
    """
    usual = len(request.accept) <= _CACHED_LENGTH
    chosen = (_choose_cached if usual else _choose)(request.accept, objects)
    if not chosen.pretty and is_pretty(request):
        return replace(chosen, pretty=True)
    return chosen


def negotiate_error(accept: str) -> str:
    """Return the media type of an error, which is never converted to another document."""
    usual = len(accept) <= _CACHED_LENGTH
    return (_choose_for_error_cached if usual else _choose_for_error)(accept)


def _choose(accept: str, objects: tuple[str, ...]) -> MediaTypeOptions:
    _check_known(accept, OFFERED)
    for clause, media_type in matching_clauses(accept, OFFERED):
        shape = _convert_target(clause, media_type)
        if shape is None or not _is_streamable(clause, media_type):
            continue
        if shape or media_type in objects:
            version = clause.parameters["v"] if shape else "v1"
            pretty = clause.parameters.get("pretty") == "1"
            return MediaTypeOptions(media_type, shape, version, pretty)
    raise not_acceptable(OFFERED)


def _choose_for_error(accept: str) -> str:
    for clause, media_type in matching_clauses(accept, OFFERED):
        if not any(clause.group_version_kind()) and _is_streamable(clause, media_type):
            return media_type
    return JSON


def _is_streamable(clause: AcceptClause, media_type: str) -> bool:
    """Return whether a clause requests no stream, or one that the media type has."""
    stream = clause.parameters.get("stream", "")
    return not stream or (stream == "watch" and media_type != YAML)


_choose_cached = lru_cache(maxsize=_CACHE_SIZE)(_choose)  # clients send the same few headers
_choose_for_error_cached = lru_cache(maxsize=_CACHE_SIZE)(_choose_for_error)


def matching_clauses(accept: str, offered: tuple[str, ...]) -> Iterator[tuple[AcceptClause, str]]:
    """Yield the clauses and the media types that satisfy them, the preferred ones first."""
    for clause in parse_accept(accept):
        for media_type in offered:
            wild = f"{media_type.partition('/')[0]}/*"
            if clause.media_type in (media_type, wild, "*/*"):
                yield clause, media_type


def parse_accept(accept: str) -> list[AcceptClause]:
    """Parse an Accept header; an empty one accepts anything."""
    if not accept:
        return [AcceptClause("*/*", {}, 1.0)]
    clauses = [_clause(part) for part in accept.split(",")]
    return sorted(clauses, key=lambda clause: (-clause.quality, clause.media_type.count("*")))


def is_pretty(request: Request) -> bool:
    """Return whether the answer is indented: by ``?pretty``, or by the User-Agent of a browser."""
    value = request.query.get("pretty", "")
    return value in _TRUE if value else request.user_agent.startswith(_BROWSERS)


def _clause(text: str) -> AcceptClause:
    media_type, *rest = (part.strip() for part in text.split(";"))
    pairs = (parameter.partition("=") for parameter in rest)
    parameters = {name.strip(): value.strip() for name, _, value in pairs}
    return AcceptClause(media_type, parameters, _quality(parameters.pop("q", "1")))


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


def _convert_target(clause: AcceptClause, media_type: str) -> str | None:
    """Return the kind that the clause requests, "" for the objects, None if it cannot be served."""
    group, version, kind = clause.group_version_kind()
    if not (group or version or kind):
        return ""
    is_meta_version = group == _META_GROUP and version in _META_VERSIONS
    tabular = kind == TABLE and media_type != PROTOBUF
    return kind if is_meta_version and (tabular or kind in (PARTIAL, PARTIAL_LIST)) else None


def _check_known(accept: str, offered: tuple[str, ...]) -> None:
    """Raise StatusError (406) in the words of upstream's router if no offered type is named."""
    named = {part.partition(";")[0].strip() for part in accept.split(",")}
    if accept and not named.intersection((*offered, "*/*")):
        message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}"
        raise StatusError(406, "NotAcceptable", message, {})


def partial_object(body: bytes, version: str) -> bytes:
    """Return the metadata of one object; keep a Status. Raise StatusError (406) for a list."""
    whole = decode_raw_object(body)
    if whole.kind == "Status":
        return body
    if whole.is_list:
        raise _not_acceptable("PartialObjectMetadata", f"is a list ({whole.kind})")
    return metadata_document(whole.metadata, version) + b"\n"


def partial_list(body: bytes, version: str) -> bytes:
    """Return the metadata of a list's objects; keep a Status. Raise StatusError (406)."""
    whole = decode_raw_object(body)
    if whole.kind == "Status":
        return body
    if whole.items is None or not whole.is_list:
        raise _not_acceptable("PartialObjectMetadataList", f"is not a list ({whole.kind})")
    items = b",".join(
        [metadata_document(decode_raw_object(item).metadata, version) for item in whole.items]
    )
    head = _head("PartialObjectMetadataList", version)
    return b"".join((head, bytes(whole.metadata), b',"items":[', items, b"]}\n"))


def partial_event(line: bytes, version: str) -> bytes:
    """Return a line of a watch with the metadata of its object; keep a line with a Status."""
    event = decode_raw_event(line)
    return encode_watch_line(event.type, partial_object(bytes(event.object), version))


def metadata_document(metadata: msgspec.Raw, version: str) -> bytes:
    """Return the PartialObjectMetadata document of an object's metadata."""
    return b"".join((_head("PartialObjectMetadata", version), bytes(metadata), b"}"))


def _head(kind: str, version: str) -> bytes:
    return f'{{"kind":"{kind}","apiVersion":"meta.k8s.io/{version}","metadata":'.encode()


def _not_acceptable(shape: str, what: str) -> StatusError:
    message = f"you requested {shape}, but the requested object {what}"
    return StatusError(406, "NotAcceptable", message)
