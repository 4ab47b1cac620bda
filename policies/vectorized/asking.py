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

from policies.columns import Columns
from policies.columns.coded import Bools
from policies.decision import Rejection
from policies.filtering import Check
from policies.model import Pod, Snapshot
from policies.upstream import Release
from policies.vectorized.verdicts import Verdicts
from policies.vectorized.view import Rows, View


@dataclass(frozen=True)
class Asked:
    """A pod, and the cluster that it is evaluated on.

    ``snapshot`` is that of the columns, or the same without the pods that ``absent`` marks (depth,
    width of the columns).
    """

    pod: Pod
    columns: Columns
    snapshot: Snapshot
    release: Release
    absent: Bools | None = None

    @cached_property
    def everything(self) -> View:
        """The view of all rows with all their pods."""
        return self.view(slice(None))

    def view(self, rows: Rows) -> View:
        """Return a view of some rows with all their pods."""
        return View(self.columns, rows, absent=self.absent)

    @cached_property
    def beside(self) -> Mapping[int, tuple[Pod, ...]]:
        """The nominated pods of a row that the pod has to fit beside, by row."""
        columns, found = self.columns, {}
        for name in columns.nominating:
            row = columns.index[name]
            pods = tuple(each for each in columns.states[row].nominated if self._yields_to(each))
            if pods:
                found[row] = pods
        return found

    def _yields_to(self, other: Pod) -> bool:
        return other.priority >= self.pod.priority and other.uid != self.pod.uid


class Footing(Protocol):
    """The state of a constraint on the rows of a view while removed pods are added back."""

    def allows(self, depth: int) -> Bools:
        """Return for each row whether the pod still fits with the pod at ``depth`` added back."""
        ...

    def put_back(self, depth: int, where: Bools) -> None:
        """Add the pods at ``depth`` back on the rows ``where``."""
        ...


class Constraint(Protocol):
    """One filter of kube-scheduler, for one pod, on the rows of a view."""

    def judge(self, view: View, verdicts: Verdicts) -> None:
        """Refuse the rows that the pod does not fit."""
        ...

    def footing(self, view: View) -> Footing | None:
        """Return the state on rows that fit; None if pods that are added back cannot matter."""
        ...


@dataclass(frozen=True)
class Twin:
    """A filter on columns.

    ``reference_rows`` have to be evaluated one by one, by the reference engine's functions. With
    ``reads_other_pods`` so have the rows with nominated pods: the filter has to pass with these
    pods and without them, and neither implies the other.
    """

    constraints: tuple[Constraint, ...] = ()
    by_hand: frozenset[int] = frozenset()
    reads_other_pods: bool = False


@runtime_checkable
class Counted(Protocol):
    """A constraint with counts over the whole cluster."""

    @property
    def name(self) -> str:
        """The name of its filter."""
        ...

    def check(self) -> Check:
        """Return the same constraint as the reference engine's filter plugin, with its counts."""
        ...


@dataclass(frozen=True)
class NodeConstraint:
    """A constraint that reads only node properties; ``refused`` is by row of the columns."""

    refused: Bools
    rejection: Rejection

    def judge(self, view: View, verdicts: Verdicts) -> None:
        """Refuse the rows in ``refused``."""
        verdicts.refuse(view.marks(self.refused), self.rejection)

    def footing(self, view: View) -> None:  # noqa: ARG002 - see Constraint
        """Return None: pods do not matter."""
        return
