"""What a question starts from, and what its answer is made of.

An :class:`Asked` is one pod put to the columns. Each filter of kube-scheduler has a twin here that
turns it into a :class:`Constraint`, which judges all rows of a view at once, and gives a
:class:`Footing` for the dry run: where the pod stands while others are put back, depth by depth.
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
    """A pod, and the cluster it is put to.

    ``snapshot`` is the one that the columns show, or the same without the pods that ``absent``
    marks (depth, width of the columns).
    """

    pod: Pod
    columns: Columns
    snapshot: Snapshot
    release: Release
    absent: Bools | None = None

    @cached_property
    def everything(self) -> View:
        """All rows with all their pods."""
        return self.view(slice(None))

    def view(self, rows: Rows) -> View:
        """Look at some rows with all their pods."""
        return View(self.columns, rows, absent=self.absent)

    @cached_property
    def beside(self) -> Mapping[int, tuple[Pod, ...]]:
        """The pods promised to a row that the pod has to fit beside, by row."""
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
    """How a constraint stands on the rows of a view while pods that went are put back."""

    def allows(self, depth: int) -> Bools:
        """Tell for each row whether the pod still fits with its pod at ``depth`` put back."""
        ...

    def put_back(self, depth: int, where: Bools) -> None:
        """Put the pods at ``depth`` back on the rows ``where``."""
        ...


class Constraint(Protocol):
    """One filter of kube-scheduler, for one pod, on rows of columns."""

    def judge(self, view: View, verdicts: Verdicts) -> None:
        """Refuse the rows that the pod does not fit."""
        ...

    def footing(self, view: View) -> Footing | None:
        """Return the footing on rows that fit; None if nothing that is put back can matter."""
        ...


@dataclass(frozen=True)
class Twin:
    """What a filter comes to on columns.

    ``by_hand`` are rows that have to be judged one by one on its account. With
    ``reads_other_pods``, so have those with pods promised to them: it has to hold with these pods
    and without, and neither follows from the other.
    """

    constraints: tuple[Constraint, ...] = ()
    by_hand: frozenset[int] = frozenset()
    reads_other_pods: bool = False


@runtime_checkable
class Counted(Protocol):
    """A constraint that took the whole cluster to count."""

    @property
    def name(self) -> str:
        """The name of its filter."""
        ...

    def check(self) -> Check:
        """Return the same constraint as the reference engine has it, counts and all."""
        ...


@dataclass(frozen=True)
class NodeConstraint:
    """A constraint that reads only the nodes' own facts; ``refused`` is by row of the columns."""

    refused: Bools
    rejection: Rejection

    def judge(self, view: View, verdicts: Verdicts) -> None:
        """Refuse what is refused."""
        verdicts.refuse(view.marks(self.refused), self.rejection)

    def footing(self, view: View) -> None:  # noqa: ARG002 - see Constraint
        """Return nothing: pods are not looked at."""
        return
