"""The rows of node names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from struct import pack as as_bytes
from typing import Final

import numpy as np

from policies.columns.coded import Ints
from policies.names import NamePositions, PackedNames, pack_names


@dataclass(frozen=True)
class PackedNameRows:
    """The positions of packed names, and the row of each position."""

    positions: NamePositions
    rows: Ints

    def find(self, names: PackedNames) -> Ints | None:
        found = self.positions.find(names)
        return None if found is None else self.rows[np.frombuffer(found, np.int64)]


class NodeRowIndex:
    """The names of dense rows; ``index`` maps a name to its row.

    Packed names have a hash table of their own. It is built on the first lookup of packed names
    after a node was added or removed, which is rare; pods do not affect it.
    """

    def __init__(self) -> None:
        self.names: Final[list[str]] = []
        self.index: Final[dict[str, int]] = {}
        self._table: PackedNameRows | None = None
        self._has_changed = True

    def append(self, name: str) -> int:
        """Add a row at the end and return its number."""
        self._has_changed = True
        row = self.index[name] = len(self.names)
        self.names.append(name)
        return row

    def drop(self, name: str) -> None:
        """Remove a row; the last one moves to its index."""
        self._has_changed = True
        row, last = self.index.pop(name), self.names.pop()
        if row < len(self.names):
            self.names[row] = last
            self.index[last] = row

    def known(self, among: Collection[str]) -> tuple[Sequence[str], Ints]:
        """Return the names that are known, each once and in order, and their rows."""
        if isinstance(among, PackedNames):
            if self._has_changed:
                self._table = _packed_name_rows(self.index)
                self._has_changed = False
            rows = None if self._table is None else self._table.find(among)
            if rows is not None:
                return among, rows
        return self._known(among)

    def _known(self, among: Collection[str]) -> tuple[tuple[str, ...], Ints]:
        """Do the same as ``known`` for names that are not packed, one by one."""
        index = self.index
        try:
            # The fastest lookup of thousands of strings; it returns a tuple only for several names.
            found = itemgetter(*among)(index) if len(among) > 1 else ()
        except KeyError:
            found = ()
        rows = np.frombuffer(as_bytes(f"{len(found)}q", *found), np.int64)
        if found and np.bincount(rows).max() == 1:
            return tuple(among), rows
        names = tuple(name for name in dict.fromkeys(among) if name in index)
        return names, np.array([index[name] for name in names], np.int64)


def _packed_name_rows(index: Mapping[str, int]) -> PackedNameRows | None:
    """Build the table; return None without the compiled module, or if a name cannot be packed."""
    # Callers list nodes roughly by name, and memory that is read in order is read fast.
    names = sorted(index)
    packed = pack_names(names)
    if packed is None:
        return None
    return PackedNameRows(
        NamePositions(packed), np.array([index[name] for name in names], np.int64)
    )
