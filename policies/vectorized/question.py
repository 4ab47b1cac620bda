"""One pod put to the columns: filtered, and tried in a dry run.

A row that the columns cannot speak for, or that has to be judged with and without the pods promised
to it, is judged *by hand*: by the reference engine's own functions, one row at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from policies.columns import Columns
from policies.columns.coded import Bools
from policies.columns.nodes import is_regular
from policies.decision import Candidate, Code, Rejection, unresolvable
from policies.filtering import NOTHING_TO_CHECK, Pipeline, prepare
from policies.model import Pod
from policies.preemption import Coverage, select_victims
from policies.reference import Rules
from policies.vectorized import attraction, room, spreading, standing
from policies.vectorized.asking import Asked, Constraint
from policies.vectorized.choosing import Candidates
from policies.vectorized.reprieving import dry_run
from policies.vectorized.verdicts import Codes, Rejections, Verdicts
from policies.vectorized.view import View, rows_where

TWINS: Mapping[str, Callable[[Asked], Constraint | None]] = {
    "NodeUnschedulable": standing.cordons,
    "NodeName": standing.names,
    "TaintToleration": standing.taints,
    "NodeAffinity": standing.node_labels,
    "NodePorts": room.ports,
    "NodeResourcesFit": room.resources,
    "PodTopologySpread": spreading.spread,
    "InterPodAffinity": attraction.affinity,
}
"""The filters on columns, by the name of the filter."""

_READ_OTHER_PODS = ("PodTopologySpread", "InterPodAffinity")


@dataclass(frozen=True)
class Tried:
    """What a dry run found, by row of the columns: why not (0: nothing said), and candidates."""

    codes: Codes
    candidates: Candidates
    found: Bools


@dataclass(frozen=True)
class Question:
    """A pod and its constraints; ``by_hand`` marks rows of the columns, ``only`` those to look at.

    ``limited_by`` names the filters that ``only`` comes from.
    """

    asked: Asked
    rules: Rules
    constraints: tuple[Constraint, ...]
    by_hand: Bools
    only: Bools | None = None
    limited_by: str = ""
    rejections: Rejections = field(default_factory=Rejections)

    def filtered(self, view: View) -> Codes:
        """Say of each row of ``view`` why the pod does not fit it, or FITS."""
        verdicts = Verdicts(self.rejections, len(view))
        if self.only is not None:
            unexamined = unresolvable(Code.NOT_EXAMINED, self.limited_by)
            verdicts.refuse(~view.marks(self.only), unexamined)
        for constraint in self.constraints:
            constraint.judge(view, verdicts)
        for place in np.flatnonzero(view.marks(self.by_hand)).tolist():
            state = self.asked.columns.states[int(view.numbers[place])]
            verdicts.settle(place, self._pipeline.examine(state))
        return verdicts.codes

    def tried(self, rows: Bools) -> Tried:
        """Find on the rows marked, of the columns, who would have to go, or why that won't help."""
        view = View(self.asked.columns, rows_where(rows & ~self.by_hand))
        run = dry_run(self.asked, self.constraints, view, self.rejections)
        verdicts = Verdicts(self.rejections, len(rows))
        verdicts.codes[view.rows] = run.verdicts.codes
        found = np.zeros(len(rows), np.bool_)
        found[run.candidates.numbers] = True
        others: dict[str, Candidate] = {}
        for row in np.flatnonzero(rows & self.by_hand).tolist():
            outcome = self._select_victims(row)
            if isinstance(outcome, Candidate):
                others[outcome.node] = outcome
                found[row] = True
            else:
                verdicts.settle(row, outcome)
        return Tried(verdicts.codes, Candidates(run, others), found)

    def _select_victims(self, row: int) -> Candidate | Rejection:
        state = self.asked.columns.states[row]
        return select_victims(self._pipeline, state, self._coverage, self.rules.policy)

    @cached_property
    def _pipeline(self) -> Pipeline:
        asked = self.asked
        return prepare(asked.pod, asked.snapshot, self.rules.release, self.rules.filters)

    @cached_property
    def _coverage(self) -> Coverage:
        return Coverage(self.asked.snapshot.budgets, self.rules.release)


def question(pod: Pod, columns: Columns, rules: Rules) -> Question | None:
    """Put ``pod`` to the columns; None if it has to be put to the reference engine instead.

    That is a pod whose amounts don't fit 64 bits, or that contradicts itself, or that a filter
    without a twin has something to say about.
    """
    if not is_regular(pod.requests):
        return None
    asked = Asked(pod, columns, rules.release)
    constraints: list[Constraint] = []
    reads_other_pods = bool(pod.host_ports)
    for each in rules.filters:
        twin = TWINS.get(each.name)
        if twin is None:
            if each.prepare(pod, columns.snapshot, rules.release) != NOTHING_TO_CHECK:
                return None
            continue
        constraint = twin(asked)
        if constraint is not None:
            constraints.append(constraint)
            reads_other_pods |= each.name in _READ_OTHER_PODS
    named = _named(pod, rules)
    if named is not None and not named:
        return None
    return Question(
        asked,
        rules,
        tuple(constraints),
        by_hand=_by_hand(asked, reads_other_pods),
        only=None if named is None else standing.rows_named(columns, tuple(named)),
        limited_by="NodeAffinity",
    )


def _named(pod: Pod, rules: Rules) -> Collection[str] | None:
    """Give the only nodes that the pod's node affinity lets it be looked at on."""
    if pod.node_affinity is None or "NodeAffinity" not in {each.name for each in rules.filters}:
        return None
    return pod.node_affinity.named()


def _by_hand(asked: Asked, reads_other_pods: bool) -> Bools:
    columns = asked.columns
    rows = {columns.index[name] for name in columns.irregular}
    if reads_other_pods:
        rows |= set(asked.beside)
    marked = room.shared_ports(asked)
    marked[list(rows)] = True
    return marked
