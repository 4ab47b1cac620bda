"""Node names packed in one JSON text, decoded to strings only on demand.

A call about five thousand nodes carries their names in a JSON array. To decode each name, look it
up and drop it costs more than the decision. So :class:`PackedNames` keeps the text,
:class:`NamePositions` finds packed names among others, byte by byte, and the names of an answer are
selected as another text. All of it needs ``_packed_names.c``, which is compiled if a compiler is
available at installation. Without it, and for a text with anything but plain names,
:func:`parse_names` returns None, and names are strings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

try:
    from policies.kubernetes._packed_names import find, index, select, split
except ImportError:
    COMPILED = False
else:
    COMPILED = True

_NUMBER_BYTES = 4


class PackedNames(Sequence[str]):
    """Names in one plain text, as :func:`parse_names` accepts it; equal to any such sequence."""

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
        """Return the names as strings; they are decoded on the first call."""
        if self._read is None:
            between = str(self.text[2:-2], "ascii").split('","')
            self._read = tuple(between) if len(self) else ()
        return self._read

    def marked(self, marks: bytes | memoryview) -> PackedNames:
        """Return the names whose byte of ``marks`` is not 0. Raise ValueError for another size."""
        return PackedNames(*select(self.text, self.begins, marks))


class NamePositions:
    """The positions of known names, as a hash table."""

    def __init__(self, known: PackedNames) -> None:
        self._known = known
        self._slots = index(known.text, known.begins)

    def find(self, names: PackedNames) -> bytes | None:
        """Return the position of each name, int64; None if one is not known, or occurs twice."""
        known = self._known
        return find(self._slots, known.text, known.begins, names.text, names.begins)


def parse_names(text: bytes | memoryview) -> PackedNames | None:
    """Return the names of a JSON array, in UTF-8, without decoding them.

    Return None if the text is no such array, has spaces between names, or has a name with an
    escaped or non-ASCII character, or of more than 253; and always without the compiled module.
    """
    begins = split(text) if COMPILED else None
    return None if begins is None else PackedNames(text, begins)


def pack_names(names: Iterable[str]) -> PackedNames | None:
    """Return names packed into one text; None where :func:`parse_names` would return None."""
    if not COMPILED:
        return None
    return parse_names(json.dumps(list(names), separators=(",", ":")).encode())
