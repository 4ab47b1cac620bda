"""Mutations of valid inputs: of bytes, and of documents.

All are functions of the input and of a random generator, so that a seed reproduces them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, TypeVar

import yaml

T = TypeVar("T")

TEXTS: Final = (
    "",
    " ",
    "-",
    ".",
    "/",
    "..",
    "*",
    "\x00",
    "a\nb",
    "\u2028",
    "\ud800",
    "\U0001f4a5",
    "\u0661",
    "a" * 64,
    "a" * 254,
    "a" * 70_000,
    "1" * 5_000,
    "1" + "0" * 5_000 + "Ki",
    "1e99999999999",
    "1e-99999999999",
    "0." + "0" * 5_000 + "1",
    "-1",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "NaN",
    "-Infinity",
    "1Ki",
    "100%",
    "101%",
    "-5%",
    "true",
    "null",
    "{}",
    "../../etc/passwd",
    "%00%ff",
    "http://user:secret@host:99999999/",
    "http://[::1",
    "10.0.0.0/33",
    "::ffff:1.2.3.4",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "2026-13-41T25:61:61Z",
    "1970-01-01T00:00:00+99:99",
    "5s",
    "9999999h",
    "^(a+)+$",
    "(" * 2_000,
    "a=b,c in (d,e),!f",
    "example.com/a",
    "node-1",
    "default",
    "Always",
)
NUMBERS: Final = (
    0,
    -0.0,
    1,
    -1,
    1.5,
    65_536,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**30,
    1e308,
    5e-324,
)
_MAX_BYTES: Final = 2**21
_MAX_DOCUMENT: Final = 2**20
_DEPTHS: Final = (40, 600, 30_000)
_PIECES: Final = (
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\r\n",
    b"\n---\n",
    b'{"a":',
    b"[[[[",
    b"]]",
    b'"',
    b"\\ud800",
    b"&a [*a]",
    b"<<: *a",
    b"!!python/object:os.system",
    b"%",
    b"9" * 5_000,
    b"1e400",
)


def pick(rng: Random, values: Sequence[T]) -> T:
    """Return one of the values."""
    return values[rng.randrange(len(values))]


def random_value(rng: Random, depth: int = 0) -> Any:
    """Return a random document, most often a scalar."""
    draw = rng.random()
    if draw < 0.5:
        return pick(rng, TEXTS)
    if draw < 0.75:
        return pick(rng, NUMBERS)
    if draw < 0.87 or depth > 2:
        return pick(rng, (None, True, False, [], {}))
    if draw < 0.93:
        return [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    keys = [pick(rng, TEXTS[:22]) for _ in range(rng.randrange(4))]
    return {key: random_value(rng, depth + 1) for key in keys}


def mutate_document(rng: Random, document: Any) -> Any:
    """Return a copy of a document with a few random changes, as long as it is not large."""
    text = json.dumps(document)
    for _ in range(1 + int(rng.expovariate(0.7))):
        changed = json.dumps(_change(rng, json.loads(text)))
        text = changed if len(changed) <= _MAX_DOCUMENT else text
    return json.loads(text)


def _change(rng: Random, document: Any) -> Any:
    holders = list(_holders(document))
    if not holders:
        return random_value(rng)
    holder = pick(rng, holders)
    if isinstance(holder, list):
        _change_list(rng, holder)
    else:
        _change_object(rng, holder)
    return document


def _holders(document: Any) -> list[Any]:
    found, waiting = [], [document]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict | list) and each:
            found.append(each)
            waiting += each.values() if isinstance(each, dict) else each
    return found


def _change_object(rng: Random, holder: dict[str, Any]) -> None:
    key = pick(rng, list(holder))
    draw = rng.random()
    if draw < 0.6:
        holder[key] = random_value(rng)
    elif draw < 0.75:
        del holder[key]
    elif draw < 0.85:
        holder[pick(rng, TEXTS)] = holder[key]
    elif draw < 0.93:
        holder[key] = [holder[key]]
    else:
        holder[key] = {"": holder[key]}


def _change_list(rng: Random, holder: list[Any]) -> None:
    index = rng.randrange(len(holder))
    draw = rng.random()
    if draw < 0.5:
        holder[index] = random_value(rng)
    elif draw < 0.65:
        del holder[index]
    elif draw < 0.9:
        holder.append(holder[index])
    else:
        holder *= min(rng.randrange(2, 200), 2 + _MAX_DOCUMENT // len(json.dumps(holder)))


def mutate_bytes(rng: Random, data: bytes) -> bytes:
    """Return bytes with a few random changes."""
    for _ in range(1 + int(rng.expovariate(0.8))):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + int(rng.expovariate(0.1)))
        data = pick(rng, _BYTE_CHANGES)(rng, data, start, end)[:_MAX_BYTES]
    return data


def _flip(rng: Random, data: bytes, start: int, _end: int) -> bytes:
    return data[:start] + bytes([rng.randrange(256)]) + data[start + 1 :]


def _insert(rng: Random, data: bytes, start: int, _end: int) -> bytes:
    return data[:start] + pick(rng, _PIECES) + data[start:]


def _delete(_rng: Random, data: bytes, start: int, end: int) -> bytes:
    return data[:start] + data[end:]


def _repeat(rng: Random, data: bytes, start: int, end: int) -> bytes:
    return data[:start] + data[start:end] * pick(rng, (2, 10, 1_000)) + data[end:]


def _cut(_rng: Random, data: bytes, start: int, _end: int) -> bytes:
    return data[:start]


def _nest(rng: Random, data: bytes, start: int, end: int) -> bytes:
    depth = pick(rng, _DEPTHS)
    opening, closing = pick(rng, ((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"- ", b"")))
    return data[:start] + opening * depth + data[start:end] + closing * depth + data[end:]


_ByteChange = Callable[[Random, bytes, int, int], bytes]
_BYTE_CHANGES: Final[Sequence[_ByteChange]] = (_flip, _flip, _insert, _delete, _repeat, _cut, _nest)


def encode_document(rng: Random, document: Any) -> bytes:
    """Write a document as JSON or YAML; sometimes the bytes are changed, too."""
    if rng.random() < 0.7:
        data = json.dumps(document).encode()
    else:
        # A surrogate cannot be written in YAML, except as an escape of JSON.
        dumped: str = yaml.dump(document, allow_unicode=rng.random() < 0.5)
        data = dumped.encode(errors="replace")
    return mutate_bytes(rng, data) if rng.random() < 0.2 else data
