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

from typing import Final

import numpy as np

LEVELS: Final = 4
"""The number of levels that are counted apart."""

_SLICE_BYTES: Final = 2**18
_QUOTE, _BACKSLASH = b'"\\'
_COUNTED: Final = np.zeros(256, bool)
_COUNTED[list(b'"\\{}[],')] = True
_STEP: Final = np.zeros(256, np.int64)
_STEP[list(b"{[")] = 1
_STEP[list(b"}]")] = -1


class ValueCounter:
    """Counts the values of a text of which it gets one slice after the other.

    ``levels`` are the numbers of values at level 0, 1, …, and of those below ``LEVELS`` together.
    """

    def __init__(self) -> None:
        self.levels = np.zeros(LEVELS + 2, np.int64)
        self._level = 0
        self._inside_string = False
        self._escapes_next = False

    def add(self, text: bytes | memoryview) -> None:
        """Count the values of the next slice."""
        found = np.frombuffer(text, np.uint8)
        places = np.flatnonzero(_COUNTED[found])
        signs = found[places]
        backslashes = signs == _BACKSLASH
        if self._escapes_next or backslashes.any():
            escaped = self._escaped(places[backslashes], len(found))
            kept = ~(escaped[places] | backslashes)
            signs = signs[kept]
        quotes = signs == _QUOTE
        inside = (np.cumsum(quotes) + self._inside_string) & 1
        self._inside_string = bool(inside[-1]) if len(inside) else self._inside_string
        signs = signs[(inside == 0) & ~quotes]
        steps = _STEP[signs]
        levels = self._level + np.cumsum(steps)
        self._level = levels[-1].item() if len(levels) else self._level
        values = np.clip(levels[steps >= 0], 0, LEVELS + 1)
        self.levels += np.bincount(values, minlength=LEVELS + 2)

    def _escaped(self, backslashes: np.ndarray, size: int) -> np.ndarray:
        """Return which bytes a backslash escapes: in a run, the second, the fourth, and so on."""
        runs = np.append([-1] if self._escapes_next else [], backslashes).astype(np.int64)
        numbers = np.arange(len(runs))
        begins = np.diff(runs, prepend=-3) != 1
        in_run = numbers - np.maximum.accumulate(np.where(begins, numbers, 0))
        escaped = np.zeros(size + 1, bool)
        escaped[runs[in_run % 2 == 0] + 1] = True
        self._escapes_next = bool(escaped[size])
        return escaped


def slices(text: bytes) -> list[memoryview]:
    """Cut a text into slices that take about a millisecond each."""
    whole = memoryview(text)
    return [whole[begin : begin + _SLICE_BYTES] for begin in range(0, len(whole), _SLICE_BYTES)]
