"""Request bodies: accepted media types, and the decoding of JSON and YAML into documents.

Nesting is bounded. A document that cannot be encoded again (more than about 250 levels, integers
beyond 64 bits) is rejected here, so later stages never meet one.

YAML is one document that is equivalent to JSON. libyaml parses the bytes; this module builds the
value, event by event, so nothing is built before it is known to be small. A body may contain at
most ``MAX_VALUES`` values, including those that aliases repeat (a "billion laughs" is rejected
after a few hundred). Upstream bounds only the size of the body; here, a second of one thread is
enough.

Source: sigs.k8s.io/yaml (keys become strings, JSON's types only), go.yaml.in/yaml (resolution of
plain scalars: YAML 1.1 without sexagesimals and without dates; aliases).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite
from typing import Any, Final

import orjson
import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import StatusError, bad_request, unsupported_media_type
from fakeapi.apiserver.wire.http_messages import JSON, PROTOBUF, Request
from fakeapi.apiserver.wire.json_syntax import json_syntax_error
from fakeapi.apiserver.wire.protobuf import read_protobuf
from policies.kubernetes.integers import INT64_MAX, UINT64_MAX

YAML: Final = "application/yaml"
MAX_DEPTH: Final = 200
MAX_VALUES: Final = 200_000

_FALSE: Final = frozenset(
    ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
)
_TRUE: Final = frozenset(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"))
_NULL: Final = frozenset(("", "~", "null", "Null", "NULL"))
_NUMBER: Final = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_MAX_EXCERPT: Final = 30
_TYPE_META: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)
_GO_NAMES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "bool"),
    (int, "number"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)
_NOTHING_FOLLOWS = (StreamStartEvent, DocumentStartEvent, DocumentEndEvent, StreamEndEvent)


def read_yaml(body: bytes) -> Any:
    """Decode one YAML document (or JSON, which is YAML); raise StatusError (400)."""
    try:
        return YamlBuilder(yaml.parse(body, Loader=yaml.CLoader)).document()
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _yaml_error(" ".join(str(error).split())) from None


class YamlBuilder:
    """Builds the value of a stream of events; sizes count all values, repeated ones included."""

    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0

    def document(self) -> Any:
        """Return the first document; None if there is none."""
        for event in self._events:
            if not isinstance(event, _NOTHING_FOLLOWS):
                value, _ = self._value(event, 1)
                for _ in self._events:
                    pass  # later documents are parsed and ignored
                return value
        return None

    def _value(self, event: Event, depth: int) -> tuple[Any, int]:
        """Return the value that begins with ``event``, and its size."""
        if depth > MAX_DEPTH:
            raise _yaml_error(f"exceeded max depth of {MAX_DEPTH}")
        if isinstance(event, AliasEvent):
            return self._alias(str(event.anchor))
        self._add(1)
        if isinstance(event, ScalarEvent):
            built: tuple[Any, int] = _scalar(event), 1
        elif isinstance(event, SequenceStartEvent):
            built = self._sequence(depth)
        else:
            built = self._mapping(depth)
        if isinstance(event, NodeEvent) and event.anchor is not None:
            self._anchors[event.anchor] = built
        return built

    def _sequence(self, depth: int) -> tuple[list[Any], int]:
        values, size = [], 1
        while not isinstance(event := next(self._events), SequenceEndEvent):
            value, more = self._value(event, depth + 1)
            values.append(value)
            size += more
        return values, size

    def _mapping(self, depth: int) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        merged: list[Any] = []
        size = 1
        while not isinstance(event := next(self._events), MappingEndEvent):
            key, _ = self._value(event, depth + 1)
            value, more = self._value(next(self._events), depth + 1)
            size += more
            if key == "<<" and isinstance(event, ScalarEvent) and not event.style:
                merged += value if isinstance(value, list) else [value]
            else:
                values[_map_key(key)] = value
        for source in merged:
            if not isinstance(source, dict):
                raise _yaml_error("map merge requires map or sequence of maps as the value")
            values = {**source, **values}
        return values, size

    def _alias(self, anchor: str) -> tuple[Any, int]:
        found = self._anchors.get(anchor)
        if found is None:
            raise _yaml_error(f"unknown anchor '{anchor}' referenced, or it contains itself")
        self._add(found[1])
        return found

    def _add(self, values: int) -> None:
        self._count += values
        if self._count > MAX_VALUES:
            raise _yaml_error(f"the document expands to more than {MAX_VALUES} values")


def _scalar(event: ScalarEvent) -> Any:
    text = event.value
    if event.style or event.tag in ("tag:yaml.org,2002:str", "!"):
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _NUMBER.fullmatch(text):
        return _integer(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _integer(text: str) -> int | float | str:
    """Return an integer of 64 bits; a float if it is larger, and the text if it is infinite."""
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.lstrip("+"))
    digits = digits.replace("_", "")
    bases = {"0b": 2, "0o": 8, "0x": 16}
    base = bases.get(digits[:2].lower(), 8 if len(digits) > 1 and digits[0] == "0" else 10)
    try:
        number = sign * int(digits, base)
        if -INT64_MAX - 1 <= number <= UINT64_MAX:
            return number
    except ValueError:  # 089 is not an octal number; 4,301 digits are too many
        pass
    if base not in (8, 10):
        return text
    value = float(text.replace("_", ""))
    return value if isfinite(value) else text


def _map_key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None or isinstance(key, dict | list):
        raise _yaml_error(f"unsupported map key of type: {type(key).__name__}")
    return str(key)


def _yaml_error(detail: str) -> StatusError:
    return bad_request(f"error converting YAML to JSON: yaml: {detail}")


_READABLE = (JSON, YAML, PROTOBUF)


def media_type(content_type: str) -> str:
    """Return the media type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def read_json(body: bytes) -> Any:
    """Decode a body as JSON; raise StatusError (400) if it is invalid or nested too deeply."""
    try:
        value = orjson.loads(body)
        check_depth(value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as error:
        raise bad_request(f"couldn't parse the body as JSON: {error}") from None
    return value


def check_depth(value: Any) -> None:
    """Raise orjson.JSONEncodeError for a value that is nested too deeply to be stored.

    Documents that the server derives from it (managedFields, events) are some levels deeper.
    """
    orjson.dumps([[[[[[[[value]]]]]]]])


def read_object(request: Request, kind: str = "") -> Document:
    """Decode a body of one object in JSON, YAML or protobuf; the default type is JSON.

    ``kind`` is the kind that the object must have, for errors. Raise StatusError: 415 for another
    media type, 400 for an invalid body.
    """
    sent = media_type(request.content_type)
    if sent == PROTOBUF:
        return read_protobuf(request.body)
    if sent not in ("", JSON, YAML):
        raise unsupported_media_type(_READABLE)
    if sent == YAML:
        value, wrong = read_yaml(request.body), ""
    else:
        value, wrong = _read_json(request.body)
    value = {} if value is None else value
    wrong = wrong or _type_meta_error(value)
    if not wrong:
        return value
    detail = f"couldn't get version/kind; json parse error: {wrong}"
    if kind:
        expected = f"the object provided is unrecognized (must be of type {kind})"
        detail = f"{expected}: {detail} ({_summary(request.body)})"
    raise bad_request(detail)


def _read_json(body: bytes) -> tuple[Any, str]:
    """Return the value of a body and "", or None and Go's words for its first error."""
    try:
        value = orjson.loads(body)
        check_depth(value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as error:
        return None, json_syntax_error(body.decode(errors="replace")) or str(error)
    return value, ""


def _type_meta_error(value: Any) -> str:
    """Return Go's words for a value that has no kind and version, or "" if it may have them."""
    if not isinstance(value, dict):
        return f"json: cannot unmarshal {_go_name(value)} into Go value of type {_TYPE_META}"
    for name, found in value.items():
        if name in ("apiVersion", "kind") and not isinstance(found, str | None):
            field = f"Go struct field .{name} of type string"
            return f"json: cannot unmarshal {_go_name(found)} into {field}"
    return ""


def _go_name(value: Any) -> str:
    return next(name for type_, name in _GO_NAMES if isinstance(value, type_))


def _summary(body: bytes) -> str:
    """Return the beginning of a body, in hexadecimal digits if it is no object."""
    if not body:
        return "<empty>"
    begin = body[:_MAX_EXCERPT]
    text = begin.decode(errors="replace") if body.startswith(b"{") else begin.hex()
    return f"{text} ..." if len(body) > _MAX_EXCERPT else text
