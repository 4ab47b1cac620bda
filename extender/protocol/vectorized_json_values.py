"""Counting the values of a JSON text with NumPy, in slices that are 16 times as large."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from extender.protocol.json_values import LEVELS, ValueCounter

_QUOTE: Final = ord('"')
_IGNORED: Final = bytes(set(range(256)) - set(b'"{}[],'))
_STEP: Final = np.zeros(256, np.int8)
_STEP[list(b"{[")] = 1
_STEP[list(b"}]")] = -1


class VectorizedValueCounter(ValueCounter):
    """Counts the values of a text in fewer and faster steps."""

    SLICE_BYTES: ClassVar[int] = 2**18

    def _count(self, text: bytes) -> None:
        signs = np.frombuffer(text.translate(None, _IGNORED), np.uint8)
        if not len(signs):
            return
        quotes = signs == _QUOTE
        in_string = (np.cumsum(quotes, dtype=np.uint8) + self._in_string) & 1
        self._in_string = bool(in_string[-1])
        steps = _STEP[signs[(in_string == 0) & ~quotes]]
        levels = np.cumsum(steps, dtype=np.int32) + self._level
        self._level = levels[-1].item() if len(levels) else self._level
        values = np.clip(levels[steps >= 0], 0, LEVELS + 1)
        counts = np.bincount(values, minlength=LEVELS + 2).tolist()
        self.levels = [sum(both) for both in zip(self.levels, counts, strict=True)]
