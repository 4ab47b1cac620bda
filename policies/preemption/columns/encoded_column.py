"""Dictionary encoding: a column of values as small codes, one code for each distinct value.

A predicate on the value (does this toleration match the taints?) is evaluated once for each
distinct value, and its result is taken for every node by code. Values that no node has any more are
dropped once they outnumber the others.
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


class DictionaryColumn(Generic[T]):
    """One value per row; ``codes[row]`` is its index in ``values``. Rows are dense from 0 on."""

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
        """Remove a row; the last one moves to its index."""
        self._size -= 1
        self.codes[row] = self.codes[self._size]

    def rows(self) -> Ints:
        """Return the codes of all rows, as a view."""
        return self.codes[: self._size]

    def code_of(self, value: T) -> int:
        """Return the code of a value, or -1 for a value that no row has."""
        return self._code_of.get(value, -1)

    def where(self, holds: Callable[[T], bool]) -> Bools:
        """Evaluate ``holds`` for each distinct value and return the result of every row."""
        answers = np.fromiter(map(holds, self.values), np.bool_, len(self.values))
        return answers[self.rows()]

    def _compact(self) -> None:
        used, codes = np.unique(self.rows(), return_inverse=True)
        self.values = [self.values[code] for code in used.tolist()]
        self._code_of = {value: code for code, value in enumerate(self.values)}
        self.codes[: self._size] = codes
