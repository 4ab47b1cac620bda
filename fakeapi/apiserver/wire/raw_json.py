"""Raw JSON: the kind, metadata and items of a document as undecoded bytes (runtime.RawExtension).

Answers are bytes that were encoded when the objects were written. Code that needs one part of a
document extracts it and leaves the rest undecoded, which is ten times faster than parsing whole
lists.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import orjson

_NOTHING: Final = msgspec.Raw(b"{}")


class RawObject(msgspec.Struct, rename={"api_version": "apiVersion"}):
    """An object, or a list of objects."""

    kind: str = ""
    api_version: str = ""
    metadata: msgspec.Raw = _NOTHING
    items: list[msgspec.Raw] | None = None

    @property
    def is_list(self) -> bool:
        """Return whether this is a list of objects."""
        return self.items is not None and self.kind.endswith("List")

    @property
    def item_kind(self) -> str:
        """Return the kind of the list's objects, or of the object itself."""
        return self.kind.removesuffix("List") if self.is_list else self.kind


class RawWatchEvent(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


_OUTLINE: Final = msgspec.json.Decoder(RawObject)
_EVENT: Final = msgspec.json.Decoder(RawWatchEvent)


def decode_raw_object(body: bytes | msgspec.Raw) -> RawObject:
    """Return the raw parts of a document that this server has encoded."""
    return _OUTLINE.decode(body)


def decode_raw_event(line: bytes) -> RawWatchEvent:
    """Return the raw parts of a line of a watch."""
    return _EVENT.decode(line)


def encode_watch_line(event_type: str, encoded: bytes) -> bytes:
    """Return the line of a watch for an encoded object."""
    return b"".join((b'{"type":"', event_type.encode(), b'","object":', encoded.rstrip(), b"}\n"))


def json_equal(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON (for ``==``, in contrast, 1 equals true)."""
    return bool(one == other) and _canonical(one) == _canonical(other)


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
