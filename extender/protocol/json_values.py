"""Counting the values of a JSON text without decoding it.

The cost of decoding depends on the number of values, and a text of some MiB can have millions. So
the values of a large text are counted first, level by level, in slices of a millisecond each. The
count depends on brackets, commas and quotes only; the decoder checks the rest of the text.

Level 1 is inside of the outermost object. Each comma and each opening bracket counts as a value of
its level, so that an object with two fields, or an array with two items, counts as two:

    {"Pod":{"spec":{}},"NodeNames":["a","b","c"]}
     level 1: 2         level 2: 1 and 3         level 3: 1
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Final

LEVELS: Final = 4
"""The number of levels that are counted apart."""

_COMMA: Final = ord(",")
_OPENING: Final = frozenset(b"{[")
_IGNORED: Final = bytes(set(range(256)) - set(b"{}[],"))
_STRING: Final = re.compile(rb'"[^"]*"')
_ESCAPE: Final = re.compile(rb"\\[\x00-\xff]")


class ValueCounter:
    """Counts the values of a text of which it gets one slice after the other.

    ``levels`` are the numbers of values at level 0, 1, …, and of those below ``LEVELS`` together.
    """

    SLICE_BYTES: ClassVar[int] = 2**14
    """The size of a slice that takes about a millisecond."""

    def __init__(self) -> None:
        self.levels = [0] * (LEVELS + 2)
        self._level = 0
        self._in_string = False
        self._escapes_next = False

    def add(self, text: bytes) -> None:
        """Count the values of the next slice."""
        self._count(self._without_escapes(text))

    def _count(self, text: bytes) -> None:
        """Count the values of a text that has no escapes."""
        levels, level = self.levels, self._level
        for sign in self._without_strings(text).translate(None, _IGNORED):
            if sign in _OPENING:
                level += 1
            elif sign != _COMMA:
                level -= 1
                continue
            levels[max(0, min(level, LEVELS + 1))] += 1
        self._level = level

    def _without_strings(self, text: bytes) -> bytes:
        if self._in_string:
            _, end, text = text.partition(b'"')
            self._in_string = not end
        text, begin, _ = _STRING.sub(b"", text).partition(b'"')
        self._in_string = self._in_string or bool(begin)
        return text

    def _without_escapes(self, text: bytes) -> bytes:
        if text and self._escapes_next:
            text, self._escapes_next = text[1:], False
        if b"\\" not in text:
            return text
        text = _ESCAPE.sub(b"", text)
        self._escapes_next = text.endswith(b"\\")
        return text


def count_in_slices(counter: ValueCounter, text: bytes) -> Iterator[list[int]]:
    """Count the values of a text; yield the counts so far after each slice."""
    size = counter.SLICE_BYTES
    for begin in range(0, len(text), size):
        counter.add(text[begin : begin + size])
        yield counter.levels
