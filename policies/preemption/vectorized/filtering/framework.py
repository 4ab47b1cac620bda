"""The framework of filters on columns, as filtering/framework.py is that of filters on nodes.

A :class:`FilterInput` is one pod and the columns of a cluster. Each filter of kube-scheduler has a
:class:`VectorizedFilter` here, which has :class:`Constraint`s. A constraint evaluates all rows of a
view at once, and returns the :class:`Capacity`s of the dry run: the pod fits while the pods that
are added back, depth by depth, do not take more than the rows have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.departing_pods import not_assumed
from policies.preemption.filtering import FilterPlugin, is_counted_beside
from policies.preemption.filtering.status import Rejection
from policies.preemption.time_limit import HasTimeLeft, in_time, no_deadline
from policies.preemption.vectorized.row_view import Amounts, Rows, RowView
from policies.preemption.vectorized.status import RowStatuses


@dataclass(frozen=True)
class FilterInput:
    """A pod, and the cluster that it is evaluated on.

    ``snapshot`` is that of the columns, or the same without the pods that ``absent`` marks (depth,
    width of the columns). ``scheduler_names`` are those of the rules. A filter that evaluates many
    terms or pods raises DeadlineExceededError if ``has_time_left`` returns false.
    """

    pod: Pod
    columns: ClusterColumns
    snapshot: Snapshot
    release: Release
    scheduler_names: frozenset[str] = frozenset()
    absent: Bools | None = None
    has_time_left: HasTimeLeft = no_deadline

    @cached_property
    def all_rows(self) -> RowView:
        """The view of all rows with all their pods."""
        return self.view(slice(None))

    def view(self, rows: Rows) -> RowView:
        """Return a view of some rows with all their pods."""
        return RowView(self.columns, rows, absent=self.absent)

    @cached_property
    def with_nominated(self) -> Bools:
        """The rows of the columns that have nominated pods."""
        marks = np.zeros(len(self.columns.names), np.bool_)
        marks[[self.columns.index[name] for name in self.columns.nominated.nodes]] = True
        return marks

    @cached_property
    def nominated_beside(self) -> Sequence[tuple[Pod, Ints]]:
        """The nominated pods that the pod has to fit beside: one of each kind, and their rows."""
        nominated = self.columns.nominated.others(self.pod.uid, self.columns.index)
        if self.absent is not None:
            nominated = ((not_assumed((each,))[0], rows) for each, rows in nominated)
        return [
            (each, rows)
            for each, rows in nominated
            if is_counted_beside(each, self.pod, self.scheduler_names)
        ]


@dataclass(frozen=True)
class NominatedAmounts:
    """The sums of amounts of the nominated pods that a pod has to fit beside, by row.

    ``amounts`` returns those of a pod on each of some rows, or on all of them: as many as ``size``.
    """

    filter_input: FilterInput
    size: int
    amounts: Callable[[Pod, Ints], Sequence[int | Ints]]

    def of_rows(self, view: RowView) -> Ints:
        """Return the sums on a view, (size, rows).

        Raise DeadlineExceededError if there is no time left.
        """
        return self._of_every_row[:, view.rows]

    @cached_property
    def _of_every_row(self) -> Ints:
        sums = np.zeros((self.size, len(self.filter_input.columns.names)), np.int64)
        beside = self.filter_input.nominated_beside
        for pod, rows in in_time(beside, self.filter_input.has_time_left):
            for place, amount in enumerate(self.amounts(pod, rows)):
                np.add.at(sums[place], rows, amount)
        return sums


@dataclass(frozen=True)
class Capacity:
    """What each row of a view has for the pods that are added back, such as free memory.

    ``left`` is by row; ``taken`` is what each pod takes, at least 0, (depth, rows).
    """

    left: Ints
    taken: Amounts


class Constraint(Protocol):
    """One filter of kube-scheduler, for one pod, on the rows of a view."""

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        """Refuse the rows that the pod does not fit."""
        ...

    def capacities(self, view: RowView) -> Iterable[Capacity]:
        """Return what the pods that are added back may take on rows that fit."""
        ...

    def inputs(self) -> Sequence[Amounts] | None:
        """Return what it reads of other rows and their pods, by row of the columns.

        A row whose node, pods and inputs are the same as before has the same result. Return None
        for a constraint that reads anything else.
        """
        ...


@dataclass(frozen=True)
class VectorizedFilter:
    """A filter on columns.

    A row has to pass with its nominated pods (:attr:`FilterInput.nominated_beside`) and without
    them. ``constraints`` evaluate it with these. A row that passes them passes without, too, except
    for ``without_nominated``, which are evaluated after the constraints of all filters.
    ``reference_rows`` have to be evaluated one by one, by the reference engine's functions. In a
    dry run so have ``holder_rows``: their pods hold devices, which may be free without them.
    """

    constraints: tuple[Constraint, ...] = ()
    without_nominated: tuple[Constraint, ...] = ()
    reference_rows: frozenset[int] = frozenset()
    holder_rows: frozenset[int] = frozenset()


class CountedConstraint(ABC):
    """A constraint with counts over the whole cluster; ``name`` is that of its filter."""

    name: str

    @abstractmethod
    def filter_plugin(self) -> FilterPlugin:
        """Return the same constraint as the reference engine's filter plugin, with its counts."""


class ConstraintWithoutCapacities:
    """A constraint that pods which are added back cannot violate, and that reads its row alone."""

    def capacities(self, view: RowView) -> Iterable[Capacity]:  # noqa: ARG002 - see Constraint
        """Return nothing."""
        return ()

    def inputs(self) -> Sequence[Amounts] | None:
        """Return nothing."""
        return ()


@dataclass(frozen=True)
class NodeConstraint(ConstraintWithoutCapacities):
    """A constraint that reads only node properties; ``refused`` is by row of the columns."""

    refused: Bools
    rejection: Rejection

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        """Refuse the rows in ``refused``."""
        statuses.refuse(view.of_nodes(self.refused), self.rejection)


def no_conflicts(view: RowView, conflicting: Amounts) -> Capacity:
    """Return the capacity of rows on which a pod above 0 in ``conflicting`` may not be added back.

    ``conflicting`` is (depth, rows).
    """
    return Capacity(np.zeros(len(view), np.int64), conflicting)
