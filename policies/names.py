"""Names as they came, in one text, and read only when somebody needs them.

A call about five thousand nodes brings their names in a JSON array. To make a string of each, look
it up and throw it away costs more than the decision does. So :class:`Packed` keeps the text, and
:class:`Places` finds packed names among others, byte by byte. Both stand on ``_names.c``, which is
compiled where a compiler was there at installation. Without it, and for a text that holds anything
but plain names, :func:`packed` gives nothing, and names are strings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

try:
    from policies._names import find, index, split
except ImportError:
    COMPILED = False
else:
    COMPILED = True

_NUMBER_BYTES = 4


class Packed(Sequence[str]):
    """Names in one text, which :func:`packed` found to be plain; equal to any such sequence."""

    def __init__(self, text: bytes | memoryview, begins: bytes) -> None:
        self.text = text
        self.begins = begins
        self._read: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.begins) // _NUMBER_BYTES - 1

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        return self.names()[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.names() == tuple(other)

    def __repr__(self) -> str:
        return repr(self.names())

    def names(self) -> tuple[str, ...]:
        """Return the names as strings, which are made when first asked for."""
        if self._read is None:
            between = str(self.text[2:-2], "ascii").split('","')
            self._read = tuple(between) if len(self) else ()
        return self._read


class Places:
    """Where names stand among others that are known."""

    def __init__(self, known: Packed) -> None:
        self._known = known
        self._slots = index(known.text, known.begins)

    def of(self, wanted: Packed) -> bytes | None:
        """Return the place of each name, int64; None if one is not known, or comes twice."""
        known = self._known
        return find(self._slots, known.text, known.begins, wanted.text, wanted.begins)


def packed(text: bytes | memoryview) -> Packed | None:
    """Take the names of a JSON array, in UTF-8, without reading them.

    None if that cannot be: if the text is no such array, or has spaces between names, or a name has
    a character that is escaped or beyond ASCII; and wherever nothing was compiled.
    """
    begins = split(text) if COMPILED else None
    return None if begins is None else Packed(text, begins)


def pack(names: Iterable[str]) -> Packed | None:
    """Put names into one text; None where :func:`packed` would not take it."""
    return packed(json.dumps(list(names), separators=(",", ":")).encode()) if COMPILED else None
