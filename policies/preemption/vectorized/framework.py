"""The framework of filters on columns, as filtering/framework.py is that of filters on nodes.

A :class:`FilterInput` is one pod and the columns of a cluster. Each filter of kube-scheduler has a
:class:`VectorizedFilter` here, which has :class:`Constraint`s. A constraint evaluates all rows of a
view at once, and returns a :class:`ConstraintState` for the dry run, which tracks whether the pod
fits while other pods are added back, depth by depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.encoded_column import Bools
from policies.preemption.filtering import FilterPlugin, has_to_fit_beside
from policies.preemption.filtering.status import Rejection
from policies.preemption.time_limit import HasTimeLeft, no_deadline
from policies.preemption.vectorized.row_view import Rows, RowView
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
    def nominated_beside(self) -> Mapping[int, tuple[Pod, ...]]:
        """The nominated pods of a row that the pod has to fit beside, by row."""
        columns, found = self.columns, {}
        for name in columns.with_nominated:
            row = columns.index[name]
            pods = tuple(
                each
                for each in self.snapshot.nodes[name].nominated
                if has_to_fit_beside(each, self.pod, self.scheduler_names)
            )
            if pods:
                found[row] = pods
        return found


class ConstraintState(Protocol):
    """The state of a constraint on the rows of a view while removed pods are added back."""

    def allows(self, depth: int) -> Bools:
        """Return for each row whether the pod still fits with the pod at ``depth`` added back."""
        ...

    def add_back(self, depth: int, where: Bools) -> None:
        """Add the pods at ``depth`` back on the rows ``where``."""
        ...


class Constraint(Protocol):
    """One filter of kube-scheduler, for one pod, on the rows of a view."""

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        """Refuse the rows that the pod does not fit."""
        ...

    def state(self, view: RowView) -> ConstraintState | None:
        """Return the state on rows that fit; None if pods that are added back cannot matter."""
        ...


@dataclass(frozen=True)
class VectorizedFilter:
    """A filter on columns.

    ``reference_rows`` have to be evaluated one by one, by the reference engine's functions. With
    ``reads_other_pods`` so have the rows with nominated pods: the filter has to pass with these
    pods and without them, and neither implies the other. In a dry run, ``holder_rows`` have to be
    evaluated one by one, too: their pods hold devices, which may be free without them.
    """

    constraints: tuple[Constraint, ...] = ()
    reference_rows: frozenset[int] = frozenset()
    reads_other_pods: bool = False
    holder_rows: frozenset[int] = frozenset()


@runtime_checkable
class CountedConstraint(Protocol):
    """A constraint with counts over the whole cluster."""

    @property
    def name(self) -> str:
        """The name of its filter."""
        ...

    def filter_plugin(self) -> FilterPlugin:
        """Return the same constraint as the reference engine's filter plugin, with its counts."""
        ...


@dataclass(frozen=True)
class NodeConstraint:
    """A constraint that reads only node properties; ``refused`` is by row of the columns."""

    refused: Bools
    rejection: Rejection

    def evaluate(self, view: RowView, statuses: RowStatuses) -> None:
        """Refuse the rows in ``refused``."""
        statuses.refuse(view.of_nodes(self.refused), self.rejection)

    def state(self, view: RowView) -> None:  # noqa: ARG002 - see Constraint
        """Return None: pods do not matter."""
        return


class ConflictingVictims:
    """Pods that always conflict when they are added back; ``conflicting`` is (depth, rows)."""

    def __init__(self, conflicting: Bools) -> None:
        self._open: Bools = ~conflicting

    def allows(self, depth: int) -> Bools:
        """Return for which rows the pod at ``depth`` does not conflict."""
        allowed: Bools = self._open[depth]
        return allowed

    def add_back(self, depth: int, where: Bools) -> None:
        """Do nothing: a pod that is added back does not make another conflict."""
