"""Columns of node properties: taints, labels, allocatable resources, and their pods' requests.

Labels have one column per key, created on the first use of the key: pods refer to few keys. A
:class:`NodeRowIndex` finds the rows of node names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from struct import pack as as_bytes
from typing import Final

import numpy as np

from policies.kubernetes.packed_names import NamePositions, PackedNames, pack_names
from policies.kubernetes.selectors import Taint
from policies.kubernetes.snapshot import Node, Resources
from policies.preemption.columns.encoded_column import Bools, DictionaryColumn, Ints
from policies.preemption.columns.pod_block import Block

MAX_AMOUNT = 2**52
"""Requests up to here can be summed in 64 bits; nodes with larger ones use plain Python."""

MAX_ALLOCATABLE = 2**63 - 1
"""What a node has is never summed: requests, which are positive, are subtracted from it."""

STANDARD = ("cpu", "memory", "ephemeral-storage")
_MOST_KEYS = 256


class NodeColumns:
    """Rows by node; ``allocatable`` and ``requested`` are (resources, width) int64.

    ``regular`` holds for each node whether none of its amounts had to be clamped, ``versions`` the
    version of the columns that changed it last.
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._labels: dict[str, DictionaryColumn[str | None]] = {}
        self._scalars: list[str] = []
        self.resources: dict[str, int] = {name: place for place, name in enumerate(STANDARD)}
        self.regular: list[bool] = []
        self.taints: DictionaryColumn[tuple[Taint, ...]] = DictionaryColumn(())
        self.declared_features: DictionaryColumn[frozenset[str]] = DictionaryColumn(())
        self.unschedulable: Bools = np.zeros(16, np.bool_)
        self.allowed_pods = np.zeros(16, np.int64)
        self.versions = np.zeros(16, np.int64)
        self.allocatable: Block = np.zeros((len(STANDARD), 16), np.int64)
        self.requested: Block = np.zeros((len(STANDARD), 16), np.int64)

    def labels(self, key: str) -> DictionaryColumn[str | None]:
        """Return every node's value of a label; None for a node without it."""
        column = self._labels.get(key)
        if column is None:
            if len(self._labels) >= _MOST_KEYS:
                del self._labels[next(iter(self._labels))]
            column = DictionaryColumn([node.labels.get(key) for node in self._nodes])
            self._labels[key] = column
        return column

    def add_resource(self, name: str) -> None:
        """Add a row for a new resource."""
        self.resources[name] = len(self.resources)
        self._scalars.append(name)
        nothing = np.zeros_like(self.allocatable[:1])
        self.allocatable = np.concatenate([self.allocatable, nothing])
        self.requested = np.concatenate([self.requested, nothing])
        for row, node in enumerate(self._nodes):
            amount = node.allocatable.scalars.get(name, 0)
            self.allocatable[-1, row] = clamp_amount(amount, MAX_ALLOCATABLE)

    def keep_resources(self, places: Sequence[int]) -> None:
        """Drop all resources but those at ``places``, which include the standard ones."""
        names = list(self.resources)
        self.resources = {names[old]: new for new, old in enumerate(places)}
        self._scalars = list(self.resources)[len(STANDARD) :]
        self.allocatable = self.allocatable[list(places)]
        self.requested = self.requested[list(places)]

    def append(self, node: Node) -> None:
        """Add a node at the end."""
        row = len(self._nodes)
        if row == len(self.allowed_pods):
            self._widen()
        self._nodes.append(node)
        self.regular.append(True)
        self.taints.append(node.taints)
        self.declared_features.append(node.declared_features)
        for key, column in self._labels.items():
            column.append(node.labels.get(key))
        self._write(row, node)

    def set(self, row: int, node: Node) -> None:
        """Replace a changed node."""
        self._nodes[row] = node
        self.taints.set(row, node.taints)
        self.declared_features.set(row, node.declared_features)
        for key, column in self._labels.items():
            column.set(row, node.labels.get(key))
        self._write(row, node)

    def drop(self, row: int) -> None:
        """Remove a node; the last one moves to its index."""
        last = len(self._nodes) - 1
        self._nodes[row] = self._nodes[last]
        self._nodes.pop()
        self.regular[row] = self.regular[last]
        self.regular.pop()
        self.taints.drop(row)
        self.declared_features.drop(row)
        for column in self._labels.values():
            column.drop(row)
        for values in (self.unschedulable, self.allowed_pods, self.versions):
            values[row] = values[last]
        for amounts in (self.allocatable, self.requested):
            amounts[:, row] = amounts[:, last]

    def set_requested(self, row: int, requested: Resources) -> None:
        """Write the sum of the requests of a node."""
        self.requested[:, row] = self.amounts(requested)

    def amounts(self, resources: Resources) -> list[int]:
        """Return requests in the order of ``resources``; other names are left out."""
        listed = self._listed(resources)
        return listed if is_regular(resources) else [clamp_amount(amount) for amount in listed]

    def _listed(self, resources: Resources) -> list[int]:
        listed = [resources.milli_cpu, resources.memory, resources.ephemeral_storage]
        if self._scalars:
            listed += [resources.scalars.get(name, 0) for name in self._scalars]
        return listed

    def _write(self, row: int, node: Node) -> None:
        listed = self._listed(node.allocatable)
        self.regular[row] = is_regular(node.allocatable, -MAX_AMOUNT, MAX_ALLOCATABLE)
        self.unschedulable[row] = node.unschedulable
        self.allowed_pods[row] = clamp_amount(node.allowed_pods)
        self.allocatable[:, row] = [clamp_amount(amount, MAX_ALLOCATABLE) for amount in listed]

    def _widen(self) -> None:
        self.unschedulable = np.concatenate([self.unschedulable, self.unschedulable])
        self.allowed_pods = np.concatenate([self.allowed_pods, self.allowed_pods])
        self.versions = np.concatenate([self.versions, self.versions])
        self.allocatable = np.concatenate([self.allocatable, self.allocatable], axis=1)
        self.requested = np.concatenate([self.requested, self.requested], axis=1)


def clamp_amount(amount: int, most: int = MAX_AMOUNT) -> int:
    """Clamp an amount to the range that can be summed in 64 bits, or to ``most``."""
    return max(-MAX_AMOUNT, min(amount, most))


def is_regular(resources: Resources, least: int = 0, most: int = MAX_AMOUNT) -> bool:
    """Return whether no amount has to be clamped: requests by default."""
    return (
        least <= resources.milli_cpu <= most
        and least <= resources.memory <= most
        and least <= resources.ephemeral_storage <= most
        and (
            not resources.scalars
            or all(least <= amount <= most for amount in resources.scalars.values())
        )
    )


@dataclass(frozen=True)
class PackedNameRows:
    """The positions of packed names, and the row of each position."""

    positions: NamePositions
    rows: Ints

    def find(self, names: PackedNames) -> Ints | None:
        """Return the row of each name, or None if one is unknown."""
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
        self._ranks: Ints | None = None
        self._listed: tuple[str, ...] | None = None
        self._listed_rows: Mapping[str, int] | None = None
        self._has_changed = True

    def append(self, name: str) -> int:
        """Add a row at the end and return its number."""
        self._forget()
        row = self.index[name] = len(self.names)
        self.names.append(name)
        return row

    def drop(self, name: str) -> None:
        """Remove a row; the last one moves to its index."""
        self._forget()
        row, last = self.index.pop(name), self.names.pop()
        if row < len(self.names):
            self.names[row] = last
            self.index[last] = row

    def listed(self) -> tuple[str, ...]:
        """Return the names, which do not change with the rows."""
        if self._listed is None:
            self._listed = tuple(self.names)
        return self._listed

    def listed_rows(self) -> Mapping[str, int]:
        """Return the row of each name, in a mapping that does not change with the rows."""
        if self._listed_rows is None:
            self._listed_rows = self.index.copy()
        return self._listed_rows

    def ranks(self) -> Ints:
        """Return the place of each row's name in the order of all names."""
        if self._ranks is None:
            by_name = sorted(range(len(self.names)), key=self.names.__getitem__)
            self._ranks = np.argsort(np.array(by_name, np.int64))
        return self._ranks

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

    def _forget(self) -> None:
        """Forget what was derived from the rows, which change."""
        self._has_changed, self._ranks = True, None
        self._listed = self._listed_rows = None

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
    rows = np.array([index[name] for name in names], np.int64)
    return PackedNameRows(NamePositions(packed), rows)
