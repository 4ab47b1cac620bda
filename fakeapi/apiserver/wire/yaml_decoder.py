"""The decoding of YAML into JSON's values.

YAML is one document that is equivalent to JSON. libyaml parses the bytes; this module builds the
value, event by event, so nothing is built before it is known to be small. A body may contain at
most ``MAX_VALUES`` values, including those that aliases repeat (a "billion laughs" is rejected
after a few hundred). Upstream bounds only the size of the body; here, a second of one thread is
enough. Nesting is bounded, too.

Source: sigs.k8s.io/yaml (keys become strings, JSON's types only; JSON has its keys in order),
go.yaml.in/yaml (resolution of plain scalars: YAML 1.1 without sexagesimals and without dates;
aliases; duplicate keys; messages).
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, isnan
from typing import Any, Final

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

from fakeapi.apiserver.wire.errors import bad_request
from fakeapi.apiserver.wire.go_format import go_literal
from policies.kubernetes.integers import INT64_MAX, UINT64_MAX

MAX_DEPTH: Final = 200
MAX_VALUES: Final = 200_000

_FALSE: Final = frozenset(
    ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
)
_TRUE: Final = frozenset(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"))
_NULL: Final = frozenset(("", "~", "null", "Null", "NULL"))
_NUMBER: Final = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)", re.ASCII)
_NO_NUMBER: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOTHING_FOLLOWS = (StreamStartEvent, DocumentStartEvent, DocumentEndEvent, StreamEndEvent)


class YamlError(ValueError):
    """The text is no YAML document of JSON's types; the message is that of go-yaml."""


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """The value of a YAML document, and a message for each key that a mapping has twice."""

    value: Any
    duplicates: tuple[str, ...]

    def strict_error(self) -> str:
        """Return the error of a strict decoder; "" if there is none."""
        return "\n  ".join(("yaml: unmarshal errors:", *self.duplicates)) if self.duplicates else ""


def decode_yaml(body: bytes) -> YamlDocument:
    """Decode the first YAML document (or JSON, which is YAML); raise YamlError."""
    try:
        builder = YamlBuilder(yaml.parse(body, Loader=yaml.CLoader))
        return YamlDocument(builder.document(), tuple(builder.duplicates))
    except UnicodeDecodeError:
        raise YamlError("yaml: invalid leading UTF-8 octet") from None
    except yaml.YAMLError as error:
        raise YamlError(f"yaml: {_go_words(error)}") from None


def read_yaml(body: bytes) -> Any:
    """Decode one YAML document (or JSON, which is YAML); raise StatusError (400)."""
    try:
        return decode_yaml(body).value
    except YamlError as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from None


def _go_words(error: yaml.YAMLError) -> str:
    """Return libyaml's message with the line that go-yaml names; the first line has no number."""
    if isinstance(error, yaml.reader.ReaderError):
        return str(error.reason)
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    problem = error.problem_mark.line if error.problem_mark else 0
    context = error.context_mark.line if error.context_mark else 0
    scanned = bool(problem) and isinstance(error, yaml.scanner.ScannerError)
    line = problem + scanned if problem else context
    return f"line {line}: {error.problem}" if line else str(error.problem)


class YamlBuilder:
    """Builds the value of a stream of events; sizes count all values, repeated ones included.

    The keys of a mapping are sorted, as JSON that go-yaml's values are encoded in.
    """

    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._count = 0
        self.duplicates: list[str] = []

    def document(self) -> Any:
        """Return the first document; None if there is none. Later ones are not read."""
        for event in self._events:
            if not isinstance(event, _NOTHING_FOLLOWS):
                return self._value(event, 1)[0]
        return None

    def _value(self, event: Event, depth: int) -> tuple[Any, int]:
        """Return the value that begins with ``event``, and its size."""
        if depth > MAX_DEPTH:
            raise _yaml_error(f"exceeded max depth of {MAX_DEPTH}")
        if isinstance(event, AliasEvent):
            return self._alias(str(event.anchor))
        self._add(1)
        anchor = event.anchor if isinstance(event, NodeEvent) else None
        if anchor is not None:
            self._anchors[anchor] = None
        if isinstance(event, ScalarEvent):
            built: tuple[Any, int] = _scalar(event), 1
        elif isinstance(event, SequenceStartEvent):
            built = self._sequence(depth)
        else:
            built = self._mapping(depth)
        if anchor is not None:
            self._anchors[anchor] = built
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
            following = next(self._events)
            value, more = self._value(following, depth + 1)
            size += more
            if key == "<<" and isinstance(event, ScalarEvent) and not event.style:
                merged += value if isinstance(value, list) else [value]
                continue
            name = _map_key(key)
            if name in values:
                line = following.start_mark.line + 1 if following.start_mark else 0
                self.duplicates.append(f"line {line}: key {go_literal(key)} already set in map")
            values[name] = value
        for source in merged:
            if not isinstance(source, dict):
                raise _yaml_error("map merge requires map or sequence of maps as the value")
            values = {**source, **values}
        return {name: values[name] for name in sorted(values)}, size

    def _alias(self, anchor: str) -> tuple[Any, int]:
        if anchor not in self._anchors:
            raise _yaml_error(f"unknown anchor '{anchor}' referenced")
        found = self._anchors[anchor]
        if found is None:
            raise _yaml_error(f"anchor '{anchor}' value contains itself")
        self._add(found[1])
        return found

    def _add(self, values: int) -> None:
        self._count += values
        if self._count > MAX_VALUES:
            raise _yaml_error(f"the document expands to more than {MAX_VALUES} values")


def _scalar(event: ScalarEvent) -> Any:
    text = event.value
    if event.tag == "tag:yaml.org,2002:binary":
        return _binary(text)
    if event.style or event.tag in ("tag:yaml.org,2002:str", "!"):
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _NUMBER.fullmatch(text):
        return _integer(text)
    if _NO_NUMBER.fullmatch(text):
        number = float(text.replace(".", ""))
        raise YamlError(
            f"json: unsupported value: {'NaN' if isnan(number) else f'{number:+}'.title()}"
        )
    return float(text) if _FLOAT.fullmatch(text) else text


def _binary(text: str) -> str:
    try:
        return b64decode(text, validate=True).decode(errors="replace")
    except ValueError:
        raise _yaml_error("!!binary value contains invalid base64 data") from None


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
    if isinstance(key, dict | list):
        raise _yaml_error(f"invalid map key: {go_literal(key)}")
    if key is None:
        raise _yaml_error("unsupported map key of type: <nil>")
    return str(key)


def _yaml_error(detail: str) -> YamlError:
    return YamlError(f"yaml: {detail}")
