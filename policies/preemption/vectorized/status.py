"""The status of each row as a code, and the same as a mapping by node name.

A decision on thousands of nodes has few different rejections. Each has a code, rows hold codes, and
a row's :class:`Rejection` is looked up on access.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policies.kubernetes.packed_names import PackedNames
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.filtering.status import (
    Code,
    CountedRejections,
    Reason,
    Rejection,
    unresolvable,
)

Codes = NDArray[np.int32]

FITS: Final = 0
_NO_VICTIM_NEEDED: Final = 1


class Rejections:
    """The rejections of one decision by code; code 0 means none."""

    def __init__(self) -> None:
        # The rejection of a row where no victim is needed contains its name.
        self._by_code: list[Rejection | None] = [None, None]
        self._codes: dict[Rejection, int] = {}

    def __len__(self) -> int:
        return len(self._by_code)

    def code(self, rejection: Rejection) -> int:
        """Return the code of a rejection."""
        if rejection.reasons[0].code is Code.NO_VICTIM_NEEDED:
            return _NO_VICTIM_NEEDED
        code = self._codes.get(rejection)
        if code is None:
            code = self._codes[rejection] = len(self._by_code)
            self._by_code.append(rejection)
        return code

    def of(self, code: int, node: str) -> Rejection:
        """Return the rejection of a code on ``node``."""
        found = self._by_code[code]
        return unresolvable(Code.NO_VICTIM_NEEDED, node) if found is None else found

    def split(self, codes: Codes) -> tuple[Codes, Codes]:
        """Return the codes of rows that are refused, and of those that could not be evaluated."""
        undecided = np.array([each is not None and each.is_undecided for each in self._by_code])
        marks = undecided[codes]
        return np.where(marks, FITS, codes), np.where(marks, codes, FITS)

    def await_devices(self) -> Bools:
        """Return by code whether evictions might free devices."""
        return np.array([found is not None and found.awaits_devices for found in self._by_code])

    def resolvable(self) -> Bools:
        """Return by code whether evicting pods might help."""
        return np.array([found is not None and found.resolvable for found in self._by_code])


class RowStatuses:
    """The status codes of the rows of a view; the first rejection of a row counts."""

    def __init__(self, rejections: Rejections, rows: int) -> None:
        self.rejections = rejections
        self.codes: Codes = np.zeros(rows, np.int32)

    @property
    def fits(self) -> Bools:
        """The rows that no filter has refused."""
        found: Bools = self.codes == FITS
        return found

    def refuse(self, where: Bools, rejection: Rejection) -> None:
        """Refuse the rows ``where``, except those refused already."""
        if where.any():
            self.codes[where & self.fits] = self.rejections.code(rejection)

    def refuse_each(self, codes: Codes) -> None:
        """Refuse the rows whose code is not FITS, each with its code."""
        self.codes = np.where(self.fits, codes, self.codes)

    def set_status(self, row: int, rejection: Rejection | None) -> None:
        """Set the status of one row, whatever it was before."""
        self.codes[row] = FITS if rejection is None else self.rejections.code(rejection)

    def set_no_victim_needed(self, where: Ints) -> None:
        """Refuse the rows where the dry run found no victims."""
        self.codes[where] = _NO_VICTIM_NEEDED


def fits_without_preemption(codes: Codes) -> Bools:
    """Return which rows were refused because the pod fits them without preemption."""
    found: Bools = codes == _NO_VICTIM_NEEDED
    return found


def count_reasons(codes: Codes, rejections: Rejections) -> Counter[Reason]:
    """Return the count of each reason over all refused rows."""
    counts: Counter[Reason] = Counter()
    for code, count in enumerate(np.bincount(codes, minlength=1).tolist()):
        if count and code not in (FITS, _NO_VICTIM_NEEDED):
            for reason in rejections.of(code, "").reasons:
                counts[reason] += count
    return counts


def names_at(names: Sequence[str], marks: Bools) -> Sequence[str]:
    """Return the marked ones of ``names``."""
    if isinstance(names, PackedNames):
        return names.marked(marks.data)
    return tuple(compress(names, marks.tolist()))


class RejectionsByNode(CountedRejections):
    """The refused nodes of a decision; ``codes`` are those of ``names``, position by position."""

    def __init__(self, names: Sequence[str], codes: Codes, rejections: Rejections) -> None:
        self._names = names
        self._codes = codes
        self._rejections = rejections
        self._places: dict[str, int] | None = None

    def __getitem__(self, name: str) -> Rejection:
        if self._places is None:
            refused = np.flatnonzero(self._codes).tolist()
            self._places = {self._names[place]: place for place in refused}
        return self._rejections.of(int(self._codes[self._places[name]]), name)

    def __iter__(self) -> Iterator[str]:
        return (self._names[place] for place in np.flatnonzero(self._codes).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self._codes))

    def by_rejection(self) -> Iterator[tuple[Rejection, Sequence[str]]]:
        """Yield each rejection with the names of its nodes."""
        refused = self._codes != FITS
        names_by_code: dict[int, list[str]] = {}
        for code, name in zip(
            self._codes[refused].tolist(), names_at(self._names, refused), strict=True
        ):
            if code == _NO_VICTIM_NEEDED:
                yield self._rejections.of(code, name), (name,)
            else:
                names_by_code.setdefault(code, []).append(name)
        for code, names in names_by_code.items():
            yield self._rejections.of(code, ""), names

    def count_reasons(self) -> Counter[Reason]:
        """Return the count of each reason; NO_VICTIM_NEEDED is counted without node names."""
        counts = count_reasons(self._codes, self._rejections)
        fitting = int(np.count_nonzero(fits_without_preemption(self._codes)))
        if fitting:
            counts[Reason(Code.NO_VICTIM_NEEDED)] = fitting
        return counts

    def __repr__(self) -> str:
        return repr(dict(self))
