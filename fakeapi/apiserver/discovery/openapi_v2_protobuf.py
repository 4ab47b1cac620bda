"""The OpenAPI v2 document in protobuf, which ``kubectl`` before 1.27 and client-go request.

A message is a table of its fields by their names in JSON. A member that is not in the table is an
extension if its name begins with ``x-``; other members have no equivalent. Values of any type, and
those of extensions, are YAML texts, of which JSON is a subset.

Source: github.com/google/gnostic-models/openapiv2/OpenAPIv2.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fakeapi.apiserver.wire.protobuf_encoder import length_delimited, varint

Encode = Callable[[int, Any], bytes]
"""Returns the encoding of a field: its number, and its value in JSON."""

_VARINT, _DOUBLE = 0, 1


@dataclass(frozen=True, slots=True)
class Message:
    """The fields of a message, and the number of its extensions (0: it has none)."""

    fields: Mapping[str, tuple[int, Encode]]
    extension: int = 0

    def encode(self, document: Mapping[str, Any]) -> bytes:
        """Return the encoding of an object."""
        parts = []
        for name, value in document.items():
            if name in self.fields:
                number, encode = self.fields[name]
                parts.append(encode(number, value))
            elif self.extension and name.startswith("x-"):
                parts.append(length_delimited(self.extension, _text(1, name) + _any(2, value)))
        return b"".join(parts)


def encode_swagger(document: Mapping[str, Any]) -> bytes:
    """Return the protobuf encoding of a document of version 2."""
    return _DOCUMENT.encode(document)


def _text(number: int, value: str) -> bytes:
    return length_delimited(number, value.encode())


def _texts(number: int, values: list[str]) -> bytes:
    return b"".join(_text(number, value) for value in values)


def _integer(number: int, value: int) -> bytes:
    return varint(number << 3 | _VARINT) + varint(value & (1 << 64) - 1)


def _double(number: int, value: float) -> bytes:
    return varint(number << 3 | _DOUBLE) + struct.pack("<d", value)


def _any(number: int, value: Any) -> bytes:
    return length_delimited(number, _text(2, orjson.dumps(value).decode()))


def _anys(number: int, values: list[Any]) -> bytes:
    return b"".join(_any(number, value) for value in values)


def _message(message: Message) -> Encode:
    return lambda number, value: length_delimited(number, message.encode(value))


def _wrapped(inner: int, encode: Encode) -> Encode:
    """Return the encoder of a message whose only field, ``inner``, has the value."""
    return lambda number, value: length_delimited(number, encode(inner, value))


def _each(encode: Encode) -> Encode:
    return lambda number, values: b"".join(encode(number, value) for value in values)


def _named(encode: Encode) -> Encode:
    """Return the encoder of a map as repeated messages of a name and a value."""

    def encode_entries(number: int, values: Mapping[str, Any]) -> bytes:
        entries = (_text(1, name) + encode(2, value) for name, value in values.items())
        return b"".join(length_delimited(number, entry) for entry in entries)

    return encode_entries


def _additional_properties(number: int, value: Any) -> bytes:
    content = _integer(2, value) if isinstance(value, bool) else _schema(1, value)
    return length_delimited(number, content)


def _schema(number: int, value: Mapping[str, Any]) -> bytes:
    return length_delimited(number, _SCHEMA.encode(value))


def _parameter(number: int, value: Mapping[str, Any]) -> bytes:
    inner = {
        "body": lambda: _message(_BODY)(1, value),
        "query": lambda: _wrapped(3, _message(_QUERY))(2, value),
        "path": lambda: _wrapped(4, _message(_PATH))(2, value),
    }
    return length_delimited(number, length_delimited(1, inner[value["in"]]()))


_SCHEMA: Final = Message(
    {
        "$ref": (1, _text),
        "format": (2, _text),
        "title": (3, _text),
        "description": (4, _text),
        "multipleOf": (6, _double),
        "maximum": (7, _double),
        "exclusiveMaximum": (8, _integer),
        "minimum": (9, _double),
        "exclusiveMinimum": (10, _integer),
        "maxLength": (11, _integer),
        "minLength": (12, _integer),
        "pattern": (13, _text),
        "maxItems": (14, _integer),
        "minItems": (15, _integer),
        "uniqueItems": (16, _integer),
        "maxProperties": (17, _integer),
        "minProperties": (18, _integer),
        "required": (19, _texts),
        "enum": (20, _anys),
        "additionalProperties": (21, _additional_properties),
        "type": (22, _wrapped(1, _text)),
        "items": (23, _wrapped(1, _schema)),
        "properties": (25, _wrapped(1, _named(_schema))),
        "example": (30, _any),
    },
    extension=31,
)
_BODY: Final = Message(
    {
        "description": (1, _text),
        "name": (2, _text),
        "in": (3, _text),
        "required": (4, _integer),
        "schema": (5, _schema),
    }
)
_QUERY: Final = Message(
    {
        "in": (2, _text),
        "description": (3, _text),
        "name": (4, _text),
        "type": (6, _text),
        "uniqueItems": (20, _integer),
    }
)
_PATH: Final = Message(
    {
        "required": (1, _integer),
        "in": (2, _text),
        "description": (3, _text),
        "name": (4, _text),
        "type": (5, _text),
        "uniqueItems": (19, _integer),
    }
)
_RESPONSE: Final = Message({"description": (1, _text), "schema": (2, _wrapped(1, _schema))})
_OPERATION: Final = Message(
    {
        "tags": (1, _texts),
        "description": (3, _text),
        "operationId": (5, _text),
        "produces": (6, _texts),
        "consumes": (7, _texts),
        "parameters": (8, _each(_parameter)),
        "responses": (9, _wrapped(1, _named(_wrapped(1, _message(_RESPONSE))))),
        "schemes": (10, _texts),
    },
    extension=13,
)
_PATH_ITEM: Final = Message(
    {
        "get": (2, _message(_OPERATION)),
        "put": (3, _message(_OPERATION)),
        "post": (4, _message(_OPERATION)),
        "delete": (5, _message(_OPERATION)),
        "patch": (8, _message(_OPERATION)),
        "parameters": (9, _each(_parameter)),
    }
)
_INFO: Final = Message({"title": (1, _text), "version": (2, _text)})
_API_KEY: Final = Message(
    {"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)}
)
_DOCUMENT: Final = Message(
    {
        "swagger": (1, _text),
        "info": (2, _message(_INFO)),
        "paths": (8, _wrapped(2, _named(_message(_PATH_ITEM)))),
        "definitions": (9, _wrapped(1, _named(_schema))),
        "security": (12, _each(_wrapped(1, _named(_wrapped(1, _texts))))),
        "securityDefinitions": (13, _wrapped(1, _named(_wrapped(2, _message(_API_KEY))))),
    }
)
