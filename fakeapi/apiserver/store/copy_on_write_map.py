"""A sorted copy-on-write map.

Keys are kept in order in *runs* of at most ``2 * RUN`` keys; a map is a list of runs. A map and its
copies share the list and the runs. The list and each run hold the token of the map that owns them.
A map copies a run, or the list, before its first write to it if the token is another map's:

    one   [ a b c | d e f | g h ]        other = one.copy(): both hold the same list
    other.put("e", 5)                    other copies the list and the middle run, nothing else

A copy costs O(1), and the first write after it O(keys / RUN + RUN). A lookup is two binary
searches. Copying assigns new tokens to both maps, so that neither writes to shared runs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

V = TypeVar("V")

RUN: Final = 256


class KeyRun(Generic[V]):
    """Keys in order, their values, and the token of the owning map."""

    __slots__ = ("keys", "owner", "values")

    def __init__(self, keys: list[str], values: list[V], owner: object) -> None:
        self.keys = keys
        self.values = values
        self.owner = owner


class CopyOnWriteMap(Generic[V]):
    """A map from str to ``V`` in key order; see the module docstring."""

    __slots__ = ("_firsts", "_list_owner", "_owner", "_runs", "_size")

    def __init__(self) -> None:
        self._owner = object()
        self._list_owner = self._owner
        self._runs: list[KeyRun[V]] = [KeyRun([], [], self._owner)]
        self._firsts: list[str] = [""]  # first key of each run; "" for the first run
        self._size = 0

    def copy(self) -> CopyOnWriteMap[V]:
        """Return a map with the same content; later writes to one are not visible in the other."""
        other: CopyOnWriteMap[V] = CopyOnWriteMap.__new__(CopyOnWriteMap)
        other._runs, other._firsts, other._size = self._runs, self._firsts, self._size
        other._list_owner = self._list_owner
        self._owner, other._owner = object(), object()
        return other

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[V]:
        for run in self._runs:
            yield from run.values

    def get(self, key: str) -> V | None:
        """Return the value of ``key``, or None."""
        run = self._runs[self._run_of(key)]
        index = bisect_left(run.keys, key)
        return run.values[index] if index < len(run.keys) and run.keys[index] == key else None

    def between(self, low: str, high: str | None = None) -> list[V]:
        """Return the values of the keys in [``low``, ``high``), in order."""
        first = self._run_of(low)
        last = len(self._runs) - 1 if high is None else self._run_of(high)
        head, tail = self._runs[first], self._runs[last]
        begin = bisect_left(head.keys, low)
        end = len(tail.keys) if high is None else bisect_left(tail.keys, high)
        if first >= last:
            return head.values[begin:end] if first == last else []
        values = head.values[begin:]
        for run in self._runs[first + 1 : last]:
            values += run.values
        values += tail.values[:end]
        return values

    def put(self, key: str, value: V) -> None:
        """Set the value of ``key``."""
        position = self._run_of(key)
        run = self._own(position)
        index = bisect_left(run.keys, key)
        if index < len(run.keys) and run.keys[index] == key:
            run.values[index] = value
            return
        run.keys.insert(index, key)
        run.values.insert(index, value)
        self._size += 1
        if len(run.keys) > 2 * RUN:
            self._split(position)

    def remove(self, key: str) -> None:
        """Remove ``key``; raises KeyError."""
        position = self._run_of(key)
        run = self._own(position)
        index = bisect_left(run.keys, key)
        if index == len(run.keys) or run.keys[index] != key:
            raise KeyError(key)
        del run.keys[index], run.values[index]
        self._size -= 1
        if not run.keys and len(self._runs) > 1:
            del self._runs[position], self._firsts[position]
            self._firsts[0] = ""

    def _run_of(self, key: str) -> int:
        return max(0, bisect_right(self._firsts, key) - 1)

    def _own(self, position: int) -> KeyRun[V]:
        """Return the run at ``position``; copy it and the list first if another map owns them."""
        if self._list_owner is not self._owner:
            self._runs, self._firsts = self._runs[:], self._firsts[:]
            self._list_owner = self._owner
        run = self._runs[position]
        if run.owner is not self._owner:
            run = self._runs[position] = KeyRun(run.keys[:], run.values[:], self._owner)
        return run

    def _split(self, position: int) -> None:
        run = self._runs[position]
        upper = KeyRun(run.keys[RUN:], run.values[RUN:], self._owner)
        del run.keys[RUN:], run.values[RUN:]
        self._runs.insert(position + 1, upper)
        self._firsts.insert(position + 1, upper.keys[0])
