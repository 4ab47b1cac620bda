"""Frames of protobuf watches, read as a client reads them."""

from __future__ import annotations

from typing import Any

from fakeapi.apiserver.wire.protobuf import read_protobuf


def read_frames(stream: bytes) -> list[tuple[str, Any]]:
    """Return the types and objects of all frames; one that was cut off is ("CUT", None)."""
    events: list[tuple[str, Any]] = []
    while stream:
        length = int.from_bytes(stream[:4], "big")
        frame, stream = stream[4 : 4 + length], stream[4 + length :]
        events.append(read_event(frame) if len(frame) == length > 0 else ("CUT", None))
    return events


def read_event(message: bytes) -> tuple[str, Any]:
    """Return the type and the object of a WatchEvent."""
    kind, rest = _length_delimited(message, 0x0A)
    extension, rest = _length_delimited(rest, 0x12)
    raw, more = _length_delimited(extension, 0x0A)
    assert (rest, more) == (b"", b"")
    return kind.decode(), read_protobuf(raw)


def _length_delimited(data: bytes, key: int) -> tuple[bytes, bytes]:
    """Return the value of the first field and the bytes after it."""
    assert data[0] == key
    length = shift = 0
    for at, byte in enumerate(data[1:], 2):
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return data[at : at + length], data[at + length :]
    raise AssertionError("a length that does not end")
