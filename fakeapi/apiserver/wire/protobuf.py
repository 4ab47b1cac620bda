r"""Protobuf request bodies of Go clients, decoded into documents.

A body is the four bytes ``k8s\0`` and an envelope (``runtime.Unknown``) with the kind of the
document and its message:

    message         = *(key value)        key = number << 3 | wire type, as a varint
    wire type 0     a varint              integers (two's complement of 64 bits), bools
    wire type 1, 5  eight or four bytes   doubles; nothing else
    wire type 2     length, bytes         strings, bytes, messages, maps (key 1, value 2)

Unknown fields are skipped, as protobuf requires. Messages may contain one another to a depth of
``MAX_DEPTH``: the schemas of a CustomResourceDefinition are the only ones that do.

Sources: k8s.io/apimachinery/pkg/runtime/serializer/protobuf, the encoding of protobuf.dev, and the
JSON forms of metav1.Time, resource.Quantity and intstr.IntOrString.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any, Final

import orjson

from fakeapi.apiserver.kinds.protobuf_fields import SCHEMA, ProtobufField, message, message_of
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import StatusError, bad_request

PREFIX: Final = b"k8s\x00"
MAX_DEPTH: Final = 100

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIGN: Final = 1 << 63
_EXACT: Final = 1 << 53
_DAY: Final = 86_400
_ERA_DAYS: Final = 146_097  # days of 400 years
_EPOCH_DAYS: Final = 719_468  # days from 0000-03-01 to 1970-01-01


class ProtobufError(ValueError):
    """Bytes are not a valid message of the expected kind."""


class FixedBytes(bytes):
    """The value of a field of wire type 1 or 5."""


def read_protobuf(body: bytes) -> Document:
    """Return the document of a body; raise StatusError (400)."""
    if not body.startswith(PREFIX):
        expected = f"expected prefix {_prefix_as_go()}"
        raise _unrecognized(
            f"provided data does not appear to be a protobuf message, {expected}", body
        )
    try:
        api_version, kind, raw = _envelope(body[len(PREFIX) :])
    except ProtobufError as error:
        raise _unrecognized(str(error), body) from None
    if not kind:
        raise _unrecognized("empty body", body)
    name = message_of(api_version, kind)
    if name is None:
        raise bad_request(f'no kind "{kind}" is registered for version "{api_version}"')
    try:
        document = _message(raw, name, 1)
    except ProtobufError as error:
        version = api_version.rpartition("/")[2]
        what = f'{kind} in version "{version}" cannot be handled as a {kind}'
        raise bad_request(f"{what}: {error}") from None
    return {"kind": kind, "apiVersion": api_version, **document}


def _prefix_as_go() -> str:
    return f"[{' '.join(str(byte) for byte in PREFIX)}]"


def _unrecognized(detail: str, body: bytes) -> StatusError:
    return bad_request(f"the object provided is unrecognized: {detail} ({body[:1024].hex()})")


def _envelope(data: bytes) -> tuple[str, str, bytes]:
    api_version, kind, raw = "", "", b""
    for number, value in _fields(data):
        if number == 1:
            named = dict(_fields(_as_bytes(value)))
            api_version, kind = (_text(named.get(part, b"")) for part in (1, 2))
        elif number == 2:
            raw = _as_bytes(value)
    return api_version, kind, raw


def _message(data: bytes, name: str, depth: int) -> Document:
    if depth > MAX_DEPTH:
        raise ProtobufError(f"exceeded max depth of {MAX_DEPTH}")
    fields = message(name)
    document: Document = {}
    for number, value in _fields(data):
        field = fields.get(number)
        if field is not None:
            _add(document, field, value, depth)
    return document


def _add(document: Document, field: ProtobufField, value: int | bytes, depth: int) -> None:
    code = field.code
    if code.startswith("["):
        elements = document.setdefault(field.name, [])
        elements += _elements(code[1:], field.reference, value, depth)
    elif code.startswith("{"):
        entry = dict(_fields(_as_bytes(value)))
        key = _text(entry.get(1, b""))
        content = entry.get(2, b"")
        members = document.setdefault(field.name, {})
        members[key] = _value(code[1:], field.reference, content, depth)
    elif not field.name:
        document.update(_message(_as_bytes(value), field.reference, depth + 1))
    else:
        found = _value(code, field.reference, value, depth)
        if found is not None and not (field.omits_zero and code in "sidob" and not found):
            document[field.name] = found


def _elements(code: str, reference: str, value: int | bytes, depth: int) -> list[Any]:
    """Return the elements of one occurrence of a list field: one element, or packed numbers."""
    if code in "io" and isinstance(value, bytes):
        numbers, position = [], 0
        while position < len(value):
            number, position = _varint(value, position)
            numbers.append(_value(code, reference, number, depth))
        return numbers
    return [_value(code, reference, value, depth)]


def _value(code: str, reference: str, value: int | bytes, depth: int) -> Any:
    if code == "m":
        return _message(_as_bytes(value), reference, depth + 1)
    if code in ("i", "o"):
        if not isinstance(value, int):
            raise ProtobufError("wrong wireType for a number")
        return bool(value) if code == "o" else _signed(value)
    if code in _UNIONS:
        return _union(_as_bytes(value), *_UNIONS[code], depth)
    if code == "d":
        return _double(value)
    return _READERS[code](_as_bytes(value))


_UNIONS: Final[Mapping[str, tuple[int, str]]] = {
    "schema-or-bool": (2, "o"),
    "schema-or-list": (1, "m"),
    "schema-or-names": (1, "s"),
}
"""The number of the schema in each message, and the code of its other field."""


def _union(data: bytes, schema: int, other: str, depth: int) -> Any:
    """Return a schema or another value; Go prefers the schema to a bool, and lists to a schema."""
    found: Document | None = None
    others: list[Any] = []
    for number, value in _fields(data):
        if number == schema:
            found = _message(_as_bytes(value), SCHEMA, depth + 1)
        elif number == 3 - schema:
            others.append(_value(other, SCHEMA, value, depth))
    if other == "o":
        return (bool(others) and others[-1]) if found is None else found
    return others or found


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message in order: numbers as integers, other values as bytes."""
    position, end = 0, len(data)
    while position < end:
        key, position = _varint(data, position)
        wire_type, number = key & 7, key >> 3
        if wire_type == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        value_type = bytes
        if wire_type == _BYTES:
            length, position = _varint(data, position)
            if length & _SIGN:
                raise ProtobufError("proto: negative length found during unmarshaling")
        elif wire_type in (_FIXED64, _FIXED32):
            length, value_type = (8 if wire_type == _FIXED64 else 4), FixedBytes
        else:
            raise ProtobufError(f"illegal wireType {wire_type}")
        if number == 0:
            raise ProtobufError("illegal tag 0")
        if length > end - position:
            raise ProtobufError("unexpected EOF")
        yield number, value_type(data[position : position + length])
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2 * _SIGN - 1), position
        shift += 7
        if shift > 63:
            raise ProtobufError("integer overflow")
    raise ProtobufError("unexpected EOF")


def _signed(value: int) -> int:
    return value - 2 * _SIGN if value & _SIGN else value


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int | FixedBytes):
        raise ProtobufError("wrong wireType for a message")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _as_bytes(value).decode()
    except UnicodeDecodeError:
        raise ProtobufError("string contains invalid UTF-8") from None


def _number(fields: Mapping[int, int | bytes], number: int) -> int:
    value = fields.get(number, 0)
    return _signed(value) if isinstance(value, int) else 0


def _double(data: int | bytes) -> float:
    if not isinstance(data, FixedBytes) or len(data) != 8:
        raise ProtobufError("wrong wireType for a double")
    number: float = struct.unpack("<d", data)[0]
    if not isfinite(number):
        raise ProtobufError(f"json: unsupported value: {number}")
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


def _time(data: bytes) -> str | None:
    return _timestamp(data, lambda _nanos: "")


def _microtime(data: bytes) -> str | None:
    return _timestamp(data, lambda nanos: f".{nanos // 1000:06d}")


def _timestamp(data: bytes, fraction: Callable[[int], str]) -> str | None:
    """Return seconds and nanoseconds since 1970 as RFC 3339; None for Go's zero time."""
    fields = dict(_fields(data))
    if not fields:
        return None
    seconds, nanos = _number(fields, 1), _number(fields, 2)
    days, rest = divmod(seconds, _DAY)
    year, month, day = _civil_date(days)
    if not 0 < year < 10_000:
        raise ProtobufError("time: year outside of range [1,9999]")
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}T{clock}{fraction(nanos)}Z"


def _civil_date(days: int) -> tuple[int, int, int]:
    """Return year, month and day; years are counted from March, so a leap day comes last."""
    era, day_of_era = divmod(days + _EPOCH_DAYS, _ERA_DAYS)
    leaps = day_of_era // 1460 - day_of_era // 36_524 + day_of_era // 146_096
    year_of_era = (day_of_era - leaps) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def _duration(data: bytes) -> str:
    """Return nanoseconds in Go's notation of durations; fractions are written in seconds."""
    nanos = _number(dict(_fields(data)), 1)
    sign, rest = ("-", -nanos) if nanos < 0 else ("", nanos)
    whole, fraction = divmod(rest, 10**9)
    hours, minutes, seconds = whole // 3600, whole // 60 % 60, whole % 60
    tail = f"{seconds}" + (f".{fraction:09d}".rstrip("0") if fraction else "") + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{tail}"
    return f"{sign}{minutes}m{tail}" if minutes else sign + tail


def _quantity(data: bytes) -> str:
    return _text(dict(_fields(data)).get(1, b"")) or "0"


def _int_or_string(data: bytes) -> int | str:
    fields = dict(_fields(data))
    return _text(fields.get(3, b"")) if _number(fields, 1) == 1 else _number(fields, 2)


def _raw(data: bytes) -> Any:
    content = _as_bytes(dict(_fields(data)).get(1, b""))
    try:
        return orjson.loads(content) if content else None
    except orjson.JSONDecodeError as error:
        raise ProtobufError(f"embedded JSON: {error}") from None


def _items(data: bytes) -> list[str]:
    return [_text(value) for number, value in _fields(data) if number == 1]


_READERS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "s": _text,
    "b": lambda data: b64encode(data).decode(),
    "time": _time,
    "microtime": _microtime,
    "duration": _duration,
    "quantity": _quantity,
    "int-or-string": _int_or_string,
    "raw": _raw,
    "items": _items,
}
