"""A column of values written as small codes: one code for each distinct value.

A question about the value (does this toleration cover the taints?) is asked once for each distinct
value and read off for every node by its code. Values that no node has any more are forgotten once
they outnumber the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=Hashable)
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_SLACK = 64


class CodedColumn(Generic[T]):
    """One value a row; ``codes[row]`` is its place in ``values``. Rows are dense from 0 on."""

    def __init__(self, rows: Sequence[T]) -> None:
        self._code_of: dict[T, int] = {}
        self.values: list[T] = []
        self.codes = np.empty(max(len(rows), 1), np.int64)
        self._size = 0
        for value in rows:
            self.append(value)

    def append(self, value: T) -> None:
        """Add a row at the end."""
        if self._size == len(self.codes):
            self.codes = np.resize(self.codes, 2 * self._size)
        self._size += 1
        self.set(self._size - 1, value)

    def set(self, row: int, value: T) -> None:
        """Write a row."""
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self.values)
            self.values.append(value)
        self.codes[row] = code
        if len(self.values) > 2 * self._size + _SLACK:
            self._compact()

    def drop(self, row: int) -> None:
        """Take a row away; the last one moves into its place."""
        self._size -= 1
        self.codes[row] = self.codes[self._size]

    def rows(self) -> Ints:
        """Return the codes of all rows, as a view."""
        return self.codes[: self._size]

    def code_of(self, value: T) -> int:
        """Return the code of a value, or -1 for one that no row has."""
        return self._code_of.get(value, -1)

    def where(self, holds: Callable[[T], bool]) -> Bools:
        """Ask each distinct value and give the answer for every row."""
        answers = np.fromiter(map(holds, self.values), np.bool_, len(self.values))
        return answers[self.rows()]

    def _compact(self) -> None:
        used, codes = np.unique(self.rows(), return_inverse=True)
        self.values = [self.values[code] for code in used.tolist()]
        self._code_of = {value: code for code, value in enumerate(self.values)}
        self.codes[: self._size] = codes
