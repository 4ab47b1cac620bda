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
from typing import Final

import numpy as np

LEVELS: Final = 4
"""The number of levels that are counted apart."""

_SLICE_BYTES: Final = 2**18
_QUOTE: Final = ord('"')
_IGNORED: Final = bytes(set(range(256)) - set(b'"{}[],'))
_ESCAPE: Final = re.compile(rb"\\[\x00-\xff]")
_STEP: Final = np.zeros(256, np.int8)
_STEP[list(b"{[")] = 1
_STEP[list(b"}]")] = -1


class ValueCounter:
    """Counts the values of a text of which it gets one slice after the other.

    ``levels`` are the numbers of values at level 0, 1, …, and of those below ``LEVELS`` together.
    """

    def __init__(self) -> None:
        self.levels = np.zeros(LEVELS + 2, np.int64)
        self._level = 0
        self._in_string = False
        self._escapes_next = False

    def add(self, text: bytes) -> None:
        """Count the values of the next slice."""
        signs = np.frombuffer(self._without_escapes(text).translate(None, _IGNORED), np.uint8)
        if not len(signs):
            return
        quotes = signs == _QUOTE
        in_string = (np.cumsum(quotes, dtype=np.uint8) + self._in_string) & 1
        self._in_string = bool(in_string[-1])
        steps = _STEP[signs[(in_string == 0) & ~quotes]]
        levels = np.cumsum(steps, dtype=np.int32) + self._level
        self._level = levels[-1].item() if len(levels) else self._level
        values = np.clip(levels[steps >= 0], 0, LEVELS + 1)
        self.levels += np.bincount(values, minlength=LEVELS + 2)

    def _without_escapes(self, text: bytes) -> bytes:
        if text and self._escapes_next:
            text, self._escapes_next = text[1:], False
        if b"\\" not in text:
            return text
        text = _ESCAPE.sub(b"", text)
        self._escapes_next = text.endswith(b"\\")
        return text


def slices(text: bytes) -> Iterator[bytes]:
    """Yield slices of a text, each of which takes about a millisecond."""
    for begin in range(0, len(text), _SLICE_BYTES):
        yield text[begin : begin + _SLICE_BYTES]
