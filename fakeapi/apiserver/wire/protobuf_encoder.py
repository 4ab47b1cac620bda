r"""Protobuf answers: documents in the envelope that clients decode, and the frames of watches.

The fields of a message are written in the order of the document's members; missing members are not
written, because Go's decoder reads them as zero values. A frame of a watch is the length of the
event in four bytes (big-endian) and the event, whose object is a whole answer:

    00 00 00 1a   WatchEvent{type: ADDED, object: RawExtension{raw: k8s\0 Unknown{...}}}

Encoding a pod takes as long as a hundred joined ones, so objects are remembered by their JSON: a
list, and any number of watches, encode each version of an object once.

Sources: k8s.io/apimachinery/pkg/runtime/serializer/protobuf, the generated Marshal methods of
k8s.io/api, and pkg/util/framer.
"""

from __future__ import annotations

import re
import struct
from base64 import b64decode
from calendar import timegm
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from hashlib import sha256
from typing import Any, Final

import orjson

from fakeapi.apiserver.kinds.protobuf_fields import (
    SCHEMA,
    ProtobufField,
    message,
    message_of,
)
from fakeapi.apiserver.wire.protobuf import PREFIX
from fakeapi.apiserver.wire.raw_json import RawObject, decode_raw_event, decode_raw_object
from policies.kubernetes.duration import parse_duration

Encode = Callable[[Any], bytes]
"""Returns the encoding of a value, without its key and length."""
EncodeField = Callable[[Any], bytes]
"""Returns the encoding of a field: its key, its length if it has one, and its value."""

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_NO_CONTENT_TYPE: Final = b"\x1a\x00\x22\x00"
_SHORT: Final = tuple(bytes((length,)) for length in range(128))
_UINT64: Final = (1 << 64) - 1
_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_REMEMBERED_BYTES: Final = 32 * 1024**2
_REMEMBERED_FRAMES: Final = 256
_REMEMBERED_TIMES: Final = 4096


def encode_protobuf(body: bytes) -> bytes | None:
    """Return an answer in protobuf; ``body`` is its JSON. None: its kind has no message."""
    whole = decode_raw_object(body)
    name = message_of(whole.api_version, whole.kind)
    if name is None:
        return None
    if whole.is_list:
        number, items = next(each for each in message(name).items() if each[1].name == "items")
        parts = _list(whole, name, number, items.reference)
    else:
        parts = [_REMEMBERED.encode(name, _without_type(body, whole))]
    named = _string(1, whole.api_version) + _string(2, whole.kind)
    length = varint(sum(map(len, parts)))
    return b"".join((PREFIX, length_delimited(1, named), b"\x12", length, *parts, _NO_CONTENT_TYPE))


@lru_cache(maxsize=_REMEMBERED_FRAMES)
def encode_frame(line: bytes) -> bytes:
    """Return the frame of a watch event from its JSON line; cached, because watches share events.

    An object whose kind has no message stays JSON, as in an event of an unknown type.
    """
    event = decode_raw_event(line)
    document = bytes(event.object)
    encoded = encode_protobuf(document) or document
    raw_extension = length_delimited(1, encoded)
    content = _string(1, event.type) + length_delimited(2, raw_extension)
    return len(content).to_bytes(FRAME_HEAD, "big") + content


FRAME_HEAD: Final = 4
"""The bytes of a frame's length."""


class EncodedObjects:
    """Encoded objects by a digest of their JSON, at most ``limit`` bytes of them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._encoded: dict[tuple[str, bytes], bytes] = {}

    def encode(self, name: str, raw: bytes) -> bytes:
        """Return the message ``name`` of an object in JSON."""
        key = name, sha256(raw).digest()
        encoded = self._encoded.get(key)
        if encoded is None:
            encoded = self._encoded[key] = message_encoder(name)(orjson.loads(raw))
            self._size += len(encoded)
            while self._size > self._limit:
                self._size -= len(self._encoded.pop(next(iter(self._encoded))))
        return encoded


_REMEMBERED: Final = EncodedObjects(_REMEMBERED_BYTES)


def _without_type(body: bytes, whole: RawObject) -> bytes:
    """Return an object as lists contain it: without kind and apiVersion at its begin."""
    head = f'{{"kind":"{whole.kind}","apiVersion":"{whole.api_version}",'.encode()
    return b"{" + body[len(head) :].rstrip() if body.startswith(head) else body


def _list(whole: RawObject, name: str, number: int, item: str) -> list[bytes]:
    """Return the parts of a list's message, which are joined only once."""
    metadata = message_encoder(name)({"metadata": orjson.loads(bytes(whole.metadata))})
    encode = _REMEMBERED.encode
    items = _key(number, _BYTES)
    parts = [metadata]
    for raw in whole.items or ():
        encoded = encode(item, bytes(raw))
        parts += (items, varint(len(encoded)), encoded)
    return parts


@cache
def message_encoder(name: str) -> Encode:
    """Return the encoder of a message."""
    fields: dict[str, EncodeField] = {}
    inlined: list[EncodeField] = []
    for number, field in message(name).items():
        if field.name:
            fields[field.name] = _field_encoder(number, field)
        else:
            inlined.append(_inlined(number, field.reference))

    def encode(document: Mapping[str, Any]) -> bytes:
        return b"".join(
            [
                fields[member](value)
                for member, value in document.items()
                if value is not None and member in fields
            ]
        )

    def encode_inlined(document: Mapping[str, Any]) -> bytes:
        return encode(document) + b"".join([part(document) for part in inlined])

    return encode_inlined if inlined else encode


def _inlined(number: int, reference: str) -> EncodeField:
    """Return the encoder of a message whose members JSON has in the enclosing object."""
    key = _key(number, _BYTES)

    def encode(document: Mapping[str, Any]) -> bytes:
        content = message_encoder(reference)(document)
        return key + varint(len(content)) + content if content else b""

    return encode


def _field_encoder(number: int, field: ProtobufField) -> EncodeField:
    if field.code.startswith("["):
        return _repeated(number, field.code[1:], field.reference)
    if field.code.startswith("{"):
        return _map(number, field.code[1:], field.reference)
    return _single(number, field.code, field.reference)


def _repeated(number: int, code: str, reference: str) -> EncodeField:
    encode = _single(number, code, reference)
    zero = _key(number, _VARINT if code in "io" else _BYTES) + b"\x00"
    return lambda values: b"".join([zero if value is None else encode(value) for value in values])


def _map(number: int, code: str, reference: str) -> EncodeField:
    key, encode = _key(number, _BYTES), _single(2, code, reference)

    def encode_entries(values: Mapping[str, Any]) -> bytes:
        parts: list[bytes] = []
        for name in sorted(values):
            value = values[name]
            entry = _string(1, name) + (b"" if value is None else encode(value))
            parts += (key, varint(len(entry)), entry)
        return b"".join(parts)

    return encode_entries


def _single(number: int, code: str, reference: str) -> EncodeField:
    if code in "io":
        key = _key(number, _VARINT)
        return lambda value: key + varint(value & _UINT64)
    if code == "d":
        key = _key(number, _FIXED64)
        return lambda value: key + struct.pack("<d", value)
    key = _key(number, _BYTES)
    if code == "s":
        return lambda value: _text(key, value)
    encode = _message(reference) if code == "m" else _ENCODERS[code]

    def encode_with_length(value: Any) -> bytes:
        content = encode(value)
        return key + varint(len(content)) + content

    return encode_with_length


def _text(key: bytes, value: str) -> bytes:
    content = value.encode()
    return key + varint(len(content)) + content


def _message(reference: str) -> Encode:
    """Return the encoder of a message that may contain itself."""
    return lambda value: message_encoder(reference)(value)


def _key(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def length_delimited(number: int, content: bytes) -> bytes:
    """Return the encoding of a field of bytes: its key, its length and its content."""
    return b"".join((_key(number, _BYTES), varint(len(content)), content))


def _string(number: int, text: str) -> bytes:
    return length_delimited(number, text.encode())


def varint(number: int) -> bytes:
    """Return the encoding of a number that is not negative."""
    if number < 0x80:
        return _SHORT[number]
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _time(value: str) -> bytes:
    seconds, _ = _timestamp(value)
    return b"" if seconds is None else b"\x08" + varint(seconds & _UINT64) + b"\x10\x00"


def _microtime(value: str) -> bytes:
    seconds, nanos = _timestamp(value)
    return b"" if seconds is None else b"\x08" + varint(seconds & _UINT64) + b"\x10" + varint(nanos)


@lru_cache(maxsize=_REMEMBERED_TIMES)
def _timestamp(text: str) -> tuple[int | None, int]:
    """Return the seconds since 1970 and the nanoseconds; None for a time that is not valid."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None, 0
    *clock, fraction, sign, hours, minutes = match.groups()
    try:
        seconds = timegm(tuple(map(int, clock)))
    except ValueError:  # there is no such month
        return None, 0
    offset = (int(hours) * 60 + int(minutes)) * 60 if sign else 0
    nanos = int((fraction or "0")[:6].ljust(6, "0")) * 1000
    return seconds - offset if sign != "-" else seconds + offset, nanos


def _duration(value: str) -> bytes:
    return b"\x08" + varint(parse_duration(value) & _UINT64)


def _quantity(value: str) -> bytes:
    return _string(1, str(value))


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return b"\x08\x01\x10\x00" + _string(3, value)
    return b"\x08\x00\x10" + varint(value & _UINT64) + b"\x1a\x00"


def _raw(value: Any) -> bytes:
    return length_delimited(1, orjson.dumps(value))


def _items(values: list[str]) -> bytes:
    return b"".join([_string(1, value) for value in values])


def _schema_or_bool(value: Any) -> bytes:
    if isinstance(value, bool):
        return b"\x08\x01" if value else b"\x08\x00"
    return b"\x08\x01" + length_delimited(2, message_encoder(SCHEMA)(value))


def _schema_or_list(value: Mapping[str, Any] | list[Any]) -> bytes:
    encode = message_encoder(SCHEMA)
    if isinstance(value, list):
        return b"".join([length_delimited(2, encode(schema)) for schema in value])
    return length_delimited(1, encode(value))


def _schema_or_names(value: Mapping[str, Any] | list[str]) -> bytes:
    if isinstance(value, list):
        return b"".join([_string(2, name) for name in value])
    return length_delimited(1, message_encoder(SCHEMA)(value))


_ENCODERS: Final[Mapping[str, Encode]] = {
    "b": b64decode,
    "time": _time,
    "microtime": _microtime,
    "duration": _duration,
    "quantity": _quantity,
    "int-or-string": _int_or_string,
    "raw": _raw,
    "items": _items,
    "schema-or-bool": _schema_or_bool,
    "schema-or-list": _schema_or_list,
    "schema-or-names": _schema_or_names,
}
