"""Which name is whose row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from struct import pack as as_bytes
from typing import Final

import numpy as np

from policies.columns.coded import Ints
from policies.names import Packed, Places, pack


@dataclass(frozen=True)
class _Table:
    """Where packed names are found, and the row of each place."""

    places: Places
    rows: Ints

    def find(self, names: Packed) -> Ints | None:
        found = self.places.of(names)
        return None if found is None else self.rows[np.frombuffer(found, np.int64)]


class RowNames:
    """The names of rows; rows are dense. ``index`` gives the row of a name.

    Packed names are found by a table of their own. It is made when some are asked about for the
    first time after a node has come or gone, which is rare; pods don't matter to it.
    """

    def __init__(self) -> None:
        self.names: Final[list[str]] = []
        self.index: Final[dict[str, int]] = {}
        self._table: _Table | None = None
        self._has_changed = True

    def append(self, name: str) -> int:
        """Add a row at the end; gives its number."""
        self._has_changed = True
        row = self.index[name] = len(self.names)
        self.names.append(name)
        return row

    def drop(self, name: str) -> None:
        """Take a row away; the last one moves into its place."""
        self._has_changed = True
        row, last = self.index.pop(name), self.names.pop()
        if row < len(self.names):
            self.names[row] = last
            self.index[last] = row

    def known(self, among: Collection[str]) -> tuple[Sequence[str], Ints]:
        """Return the names that are known, each once and in order, and their rows."""
        if isinstance(among, Packed):
            if self._has_changed:
                self._table = _table(self.index)
                self._has_changed = False
            rows = None if self._table is None else self._table.find(among)
            if rows is not None:
                return among, rows
        return self._known(among)

    def _known(self, among: Collection[str]) -> tuple[tuple[str, ...], Ints]:
        """Do as ``known`` for any names, one by one."""
        index = self.index
        try:
            # The fastest way to look thousands of strings up; it gives a tuple only for several.
            found = itemgetter(*among)(index) if len(among) > 1 else ()
        except KeyError:
            found = ()
        rows = np.frombuffer(as_bytes(f"{len(found)}q", *found), np.int64)
        if found and np.bincount(rows).max() == 1:
            return tuple(among), rows
        names = tuple(name for name in dict.fromkeys(among) if name in index)
        return names, np.array([index[name] for name in names], np.int64)


def _table(index: Mapping[str, int]) -> _Table | None:
    """Make the table; None if nothing was compiled, or some name cannot be packed."""
    # Callers list nodes more or less by name, and memory that is read in order is read fast.
    names = sorted(index)
    packed = pack(names)
    if packed is None:
        return None
    return _Table(Places(packed), np.array([index[name] for name in names], np.int64))
