"""What was found on each row, kept from one question to the next about pods of the same kind.

A burst of a Deployment asks the same question for each of its pods, and between two of these few
nodes change. Pods are of one *kind* if filters and the order of candidates read the same of them.
What is found on a row depends on its node, its pods, what their budgets allow, and the inputs of
the constraints: only the rows of which any of these has changed are evaluated again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from policies.kubernetes.selectors import Labels, SpreadConstraint
from policies.kubernetes.snapshot import NO_LABELS, Pod
from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.decision import Candidate
from policies.preemption.policy import Policy
from policies.preemption.vectorized.dry_run import DryRunRows
from policies.preemption.vectorized.filtering.framework import (
    Constraint,
    CountedConstraint,
    FilterInput,
)
from policies.preemption.vectorized.filtering.pod_topology_spread import PodTopologySpreadConstraint
from policies.preemption.vectorized.row_view import Amounts, Rows
from policies.preemption.vectorized.status import FITS, Codes, Rejections
from policies.preemption.vectorized.victim_keys import own_keys

MOST_KINDS: Final = 32
_MOST_REJECTIONS: Final = 4096
"""Some name pods, so that there are ever new ones."""

T = TypeVar("T", bound=np.generic)

Bits = NDArray[np.uint8]
"""Marks of pods, eight of a row in each byte, (bytes of a row, rows)."""


class RowResults:
    """The results of the pods of one kind, by row of the columns.

    ``filtered`` holds the status code of filtering where ``is_filtered``, ``tried`` that of the dry
    run where ``is_tried``; of its candidates, ``victims`` and ``reprieved`` hold the pods, and
    ``keys`` the keys by the name of the criterion. ``others`` are the candidates that the reference
    engine has found, by row. Arrays that decisions keep are replaced, never changed.
    """

    def __init__(self) -> None:
        self.rejections = Rejections()
        self.filtered: Codes = np.zeros(0, np.int32)
        self.is_filtered: Bools = np.zeros(0, np.bool_)
        self.tried: Codes = np.zeros(0, np.int32)
        self.is_tried: Bools = np.zeros(0, np.bool_)
        self.victims: Bits = np.zeros((0, 0), np.uint8)
        self.reprieved: Bits = np.zeros((0, 0), np.uint8)
        self.keys: dict[str, Ints] = {}
        self.others: dict[int, Candidate] = {}
        self._version = 0
        self._inputs: Sequence[Amounts] = ()
        self._own: Ints = np.zeros(0, np.int64)

    def follow(self, columns: ClusterColumns, inputs: Sequence[Amounts], own: Ints) -> None:
        """Forget the results of rows that have changed, or whose inputs have.

        The pod is nominated to ``own`` rows: their results are not those of its kind.
        """
        width, depth = len(columns.names), columns.pod_block.depth()
        self._resize(width, -(-depth // 8))
        stale = columns.versions() > self._version
        if len(inputs) != len(self._inputs):
            stale[:] = True
        for before, now in zip(self._inputs, inputs, strict=False):
            known = min(len(before), width)
            stale[:known] |= before[:known] != now[:known]
        stale[self._own[self._own < width]] = True
        stale[own] = True
        self._version, self._inputs, self._own = columns.version, inputs, own
        self.is_filtered[stale] = False
        self.is_tried[stale] = False
        for row in [row for row in self.others if row >= width or stale[row]]:
            del self.others[row]

    def candidates(self, rows: Bools) -> Bools:
        """Return which of ``rows`` are candidates."""
        found: Bools = rows & self.is_tried & (self.tried == FITS)
        return found

    def record_filtered(self, rows: Rows, codes: Codes) -> None:
        """Record the status codes of filtering."""
        self.filtered[rows] = codes
        self.is_filtered[rows] = True

    def record_tried(self, row: int, outcome: Candidate | int) -> None:
        """Record what the reference engine found on a row: a candidate, or a status code."""
        self.is_tried[row] = True
        if isinstance(outcome, Candidate):
            self.others[row], outcome = outcome, FITS
        self.tried[row] = outcome

    def record_run(self, run: DryRunRows, rows: Rows, policy: Policy) -> None:
        """Record a dry run on ``rows``; the keys are those of the policy's own criteria."""
        self.tried[rows] = run.statuses.codes
        self.is_tried[rows] = True
        found = run.candidates.numbers
        if not len(found):
            return
        self.victims, self.reprieved = self.victims.copy(), self.reprieved.copy()
        for bits, marks in (
            (self.victims, run.victims),
            (self.reprieved, run.potential & ~run.victims),
        ):
            bits[:, found] = np.packbits(marks, axis=0)
        for name, keys in own_keys(run, policy).items():
            known = self.keys.get(name, np.zeros(0, np.int64))
            self.keys[name] = _resized(known, (len(self.tried),))
            self.keys[name][found] = keys

    def _resize(self, width: int, depth: int) -> None:
        """Fit the arrays to the columns; what is added is not known."""
        if (depth, width) == self.victims.shape:
            return
        self.filtered = _resized(self.filtered, (width,))
        self.is_filtered = _resized(self.is_filtered, (width,))
        self.tried = _resized(self.tried, (width,))
        self.is_tried = _resized(self.is_tried, (width,))
        self.victims = _resized(self.victims, (depth, width))
        self.reprieved = _resized(self.reprieved, (depth, width))
        self.keys = {name: _resized(keys, (width,)) for name, keys in self.keys.items()}


def _resized(values: NDArray[T], shape: tuple[int, ...]) -> NDArray[T]:
    """Return a copy of another shape, filled up with zeros."""
    copy = np.zeros(shape, values.dtype)
    common = tuple(map(slice, map(min, values.shape, shape)))
    copy[common] = values[common]
    return copy


@dataclass(frozen=True)
class PodKind:
    """What filters and the order of candidates read of a pod, and of its namespace and workload.

    Pods of one kind have equal results on a row, except where one of them is nominated.
    """

    pod: Pod
    constraints: tuple[SpreadConstraint, ...]
    namespaces: Mapping[str, Labels]


def kind_of(
    pod: Pod, namespaces: Mapping[str, Labels], constraints: Sequence[Constraint]
) -> PodKind:
    """Return the kind of a pod; only constraints that count pods read labels."""
    counted = any(isinstance(each, CountedConstraint) for each in constraints)
    spread = [each for each in constraints if isinstance(each, PodTopologySpreadConstraint)]
    read = structs.replace(
        pod,
        name="",
        uid="",
        labels=pod.labels if counted else NO_LABELS,
        nominated_node=None,
        controller=None,
        owner=None,
        annotations=NO_LABELS,
        waiting_since_ns=0,
    )
    return PodKind(read, spread[0].constraints if spread else (), namespaces if counted else {})


def inputs_of_rows(
    filter_input: FilterInput, policy: Policy, constraints: Iterable[Constraint]
) -> Sequence[Amounts] | None:
    """Return the inputs of all constraints; None if results may depend on anything else."""
    grouped = filter_input.columns.with_grouped
    if filter_input.absent is not None or grouped or not policy.decides_by_node:
        return None
    inputs: list[Amounts] = []
    for read in (each.inputs() for each in constraints):
        if read is None:
            return None
        inputs += read
    return inputs


@dataclass
class KnownResults:
    """The results of the kinds of pods that were asked about last, the latest first."""

    _kinds: list[tuple[PodKind, RowResults]] = field(default_factory=list)

    def results(
        self,
        filter_input: FilterInput,
        constraints: Sequence[Constraint],
        inputs: Sequence[Amounts] | None,
    ) -> RowResults:
        """Return what is known of the rows; nothing without ``inputs``."""
        columns, own = filter_input.columns, list[int]()
        results = RowResults()
        if inputs is not None:
            namespaces = filter_input.snapshot.namespaces
            results = self.of_kind(kind_of(filter_input.pod, namespaces, constraints))
            nominated = columns.nominated.nodes_of(filter_input.pod.uid)
            own = [columns.index[name] for name in nominated]
        results.follow(columns, inputs or (), np.array(own, np.int64))
        return results

    def of_kind(self, kind: PodKind) -> RowResults:
        """Return the results of a kind, which are none at first."""
        place = next((i for i, (known, _) in enumerate(self._kinds) if known == kind), None)
        results = RowResults() if place is None else self._kinds.pop(place)[1]
        if len(results.rejections) > _MOST_REJECTIONS:
            results = RowResults()
        self._kinds = [(kind, results), *self._kinds[: MOST_KINDS - 1]]
        return results
