"""The evaluation of one pod on the columns: filtering and a dry run (preemption.Evaluator).

A row that the columns cannot represent, or that has to be evaluated with and without its nominated
pods, is a *reference row*: the reference engine's own functions evaluate it, one row at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from policies.columns.coded import Bools
from policies.columns.nodes import is_regular
from policies.decision import Candidate, Code, Rejection, unresolvable
from policies.filtering import (
    Check,
    DynamicResources,
    Filter,
    InterPodAffinity,
    NodeAffinity,
    NodeName,
    NodePorts,
    NodeResourcesFit,
    NodeUnschedulable,
    NodeVolumeLimits,
    Pipeline,
    PodTopologySpread,
    Preparation,
    TaintToleration,
    VolumeBinding,
    VolumeRestrictions,
    VolumeZone,
    prepare,
)
from policies.model import NodeState, Pod, Snapshot
from policies.patience import OutOfTimeError, Patience
from policies.preemption import Coverage, select_victims
from policies.rules import Rules
from policies.upstream import Release
from policies.vectorized import attraction, room, spreading, standing, storing
from policies.vectorized.asking import Asked, Constraint, Counted, Twin
from policies.vectorized.choosing import Candidates
from policies.vectorized.reprieving import dry_run
from policies.vectorized.verdicts import Codes, Rejections, Verdicts
from policies.vectorized.view import View, rows_where

_COUNTING = (PodTopologySpread, InterPodAffinity)


@dataclass(frozen=True)
class _Ready:
    """A filter that was prepared already."""

    name: str
    check: Check | None

    def prepare(self, pod: Pod, snapshot: Snapshot, release: Release) -> Preparation:  # noqa: ARG002
        return Preparation(self.check)


@dataclass(frozen=True)
class Tried:
    """The result of a dry run, by row of the columns: status codes (0: none), and candidates.

    ``best`` are the best two of these, or as many as there are; ``untried`` rows were left out.
    """

    codes: Codes
    candidates: Candidates
    best: Sequence[Candidate]
    found: Bools
    untried: int


@dataclass(frozen=True)
class Limits:
    """The only rows to evaluate (None: all), and the filters that limit them."""

    rows: Bools | None = None
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """A pod and its constraints; ``reference_rows`` marks rows of the columns."""

    asked: Asked
    rules: Rules
    constraints: tuple[Constraint, ...]
    limits: Limits
    by_hand: Bools
    rejections: Rejections = field(default_factory=Rejections)

    def filtered(self, view: View, patience: Patience) -> Codes:
        """Return for each row of ``view`` the status code of the pod, or FITS.

        Raise DeadlineExceededError if ``has_time_left`` returns false.
        """
        verdicts = Verdicts(self.rejections, len(view))
        if self.limits.rows is not None:
            unexamined = unresolvable(Code.NOT_EXAMINED, " ".join(self.limits.by))
            nominated = (self.asked.pod.nominated_node or "",)
            looked_at = self.limits.rows | standing.rows_named(self.asked.columns, nominated)
            verdicts.refuse(~view.marks(looked_at), unexamined)
        for constraint in self.constraints:
            constraint.judge(view, verdicts)
        for place in np.flatnonzero(view.marks(self.by_hand)).tolist():
            if not patience():
                raise OutOfTimeError
            verdicts.settle(place, self._pipeline.examine(self._state(int(view.numbers[place]))))
        return verdicts.codes

    def tried(self, rows: Bools, patience: Patience) -> Tried:
        """Find the victims on the marked rows of the columns, or why preemption cannot help there.

        When ``has_time_left`` returns false, no more reference rows are evaluated.
        """
        view = self.asked.view(rows_where(rows & ~self.by_hand))
        run = dry_run(self.asked, self.constraints, view, self.rejections)
        verdicts = Verdicts(self.rejections, len(rows))
        verdicts.codes[view.rows] = run.verdicts.codes
        found = np.zeros(len(rows), np.bool_)
        found[run.candidates.numbers] = True
        others: dict[str, Candidate] = {}
        by_hand = np.flatnonzero(rows & self.by_hand).tolist()
        judged = 0
        for row in by_hand:
            if not patience():
                break
            judged += 1
            outcome = self._select_victims(row)
            if isinstance(outcome, Candidate):
                others[outcome.node] = outcome
                found[row] = True
            else:
                verdicts.settle(row, outcome)
        candidates = Candidates(run, others)
        best = candidates.best(run, self.rules.policy.candidates)
        return Tried(verdicts.codes, candidates, best, found, len(by_hand) - judged)

    def _select_victims(self, row: int) -> Candidate | Rejection:
        return select_victims(self._pipeline, self._state(row), self._coverage, self.rules.policy)

    def _state(self, row: int) -> NodeState:
        return self.asked.snapshot.nodes[self.asked.columns.names[row]]

    @cached_property
    def _pipeline(self) -> Pipeline:
        """The reference engine's filters, with the counts that the columns already have."""
        pod, snapshot, release = self.asked.pod, self.asked.snapshot, self.rules.release
        counted = {
            each.name: each.check() for each in self.constraints if isinstance(each, Counted)
        }
        filters = [
            _Ready(each.name, counted.get(each.name)) if isinstance(each, _COUNTING) else each
            for each in self.rules.filters
        ]
        return prepare(pod, snapshot, release, filters)

    @cached_property
    def _coverage(self) -> Coverage:
        return Coverage(self.asked.snapshot.budgets, self.rules.release)


def question(asked: Asked, rules: Rules) -> Question | None:
    """Return the evaluation of a pod on the columns; None if that is left to the reference engine.

    That is a pod whose amounts do not fit 64 bits, that contradicts itself, or that a filter
    without a vectorized implementation applies to.
    """
    limits = _limits(asked, rules) if is_regular(asked.pod.requests) else None
    if limits is None:
        return None
    constraints: list[Constraint] = []
    by_hand = {asked.columns.index[name] for name in asked.columns.irregular}
    for each in rules.filters:
        found = twin(each, asked)
        if found is None:
            return None
        constraints += found.constraints
        by_hand |= found.by_hand
        if found.reads_other_pods:
            by_hand |= asked.beside.keys()
    marks = np.zeros(len(asked.columns.names), np.bool_)
    marks[list(by_hand)] = True
    return Question(asked, rules, tuple(constraints), limits, marks)


def twin(each: Filter, asked: Asked) -> Twin | None:
    """Return the vectorized filter; None if there is none, or if the filter refuses the pod."""
    match each:
        case NodeAffinity():
            return standing.node_labels(each, asked)
        case NodeResourcesFit():
            return room.resources(each, asked)
        case PodTopologySpread():
            return spreading.spread(each, asked)
        case InterPodAffinity():
            return attraction.affinity(each, asked)
    found = _TWINS.get(type(each))
    return None if found is None else found(each, asked)


_TWINS: Mapping[type[Filter], Callable[[Filter, Asked], Twin | None]] = {
    NodeUnschedulable: lambda _, asked: standing.cordons(asked),
    NodeName: lambda _, asked: standing.names(asked),
    TaintToleration: lambda _, asked: standing.taints(asked),
    NodePorts: lambda _, asked: room.ports(asked),
    VolumeRestrictions: storing.restrictions,
    NodeVolumeLimits: storing.limits,
    VolumeBinding: storing.by_node,
    VolumeZone: storing.by_node,
    DynamicResources: storing.by_node,
}
"""The vectorized filters of filters without settings."""


def _limits(asked: Asked, rules: Rules) -> Limits | None:
    """Return the limits of the filters on node names; None if they contradict the pod."""
    limits = Limits()
    for each in rules.filters:
        if not isinstance(each, NodeName | NodeAffinity):
            continue
        prepared = each.prepare(asked.pod, asked.snapshot, asked.release)
        if prepared.conflict is not None:
            return None
        if prepared.only is not None:
            named = standing.rows_named(asked.columns, prepared.only)
            rows = named if limits.rows is None else limits.rows & named
            limits = Limits(rows, tuple(sorted((*limits.by, each.name))))
    return limits
