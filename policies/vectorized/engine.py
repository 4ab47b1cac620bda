"""The vectorized engine: decisions equal to the reference engine's, on columns of all nodes.

Most rows are evaluated together. A row that the columns cannot represent (see
:class:`policies.preemption.columns.ClusterColumns`), or that needs two passes because of nominated
pods, is evaluated by the reference engine's own functions, and its result is merged with the
others. A pod or a filter without a vectorized implementation is left to the reference engine
altogether.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from policies import reference, wording
from policies.columns import Columns
from policies.columns.cells import FLAGS
from policies.columns.coded import Bools
from policies.columns.table import DEPARTING
from policies.decision import FEASIBLE, FilterDecision, PreemptionDecision
from policies.departing import reach_far, without_departing
from policies.filtering import unjudged
from policies.model import Pod, Snapshot
from policies.patience import Patience, endless
from policies.preemption import ineligibility
from policies.reference import nominated_status
from policies.rules import DEFAULT_RULES, Rules
from policies.vectorized.asking import Asked
from policies.vectorized.question import Question, Tried, question
from policies.vectorized.verdicts import FITS, ByName, Codes, count_reasons, needs_nobody
from policies.vectorized.view import Rows

_EVERY_ROW: Rows = slice(None)
_MANY = 4


@dataclass(frozen=True)
class _Known:
    """The requested names and their rows; ``order`` has the same names in the order of results."""

    names: Sequence[str]
    rows: Rows
    order: Sequence[str]


@dataclass(frozen=True)
class _Filtered:
    """The result of filtering ``rows``."""

    rows: Rows
    codes: Codes
    decision: FilterDecision


class Vectorized:
    """An engine that keeps the columns of one cluster."""

    def __init__(self, rules: Rules = DEFAULT_RULES) -> None:
        self.rules: Final = rules
        self._columns = Columns(rules.policy, rules.release)
        self._told = self._columns.snapshot

    def follow(self, snapshot: Snapshot, changed: Collection[str] | None = None) -> None:
        """Update the columns to ``snapshot``.

        See :meth:`policies.preemption.engine.Engine.follow`.
        """
        told, self._told = self._told, snapshot
        # A decision about another snapshot has updated the columns to that one.
        is_there_still = self._columns.snapshot is told
        self._columns.follow(snapshot, changed if is_there_still else None)

    def filter_nodes(
        self,
        pod: Pod,
        snapshot: Snapshot,
        among: Collection[str] | None = None,
        patience: Patience = endless,
    ) -> FilterDecision:
        """Do the same as :func:`policies.preemption.reference_engine.filter_nodes`."""
        return self._filter(pod, snapshot, self._known(snapshot, among), patience)

    def filter_leniently(
        self,
        pod: Pod,
        snapshot: Snapshot,
        among: Collection[str],
        patience: Patience = endless,
    ) -> FilterDecision:
        """Filter nodes that have departing pods.

        It does the same as
        :func:`policies.preemption.reference_engine.filter_with_terminating_pods`.
        """
        known = self._known(snapshot, among)
        leaving = self._leaving(_EVERY_ROW if reach_far(pod, snapshot) else known.rows)
        if not leaving:
            return self._filter(pod, snapshot, known, patience)
        left = without_departing(snapshot, leaving)
        absent = _departing_on(self._columns, leaving)
        asked = question(Asked(pod, self._columns, left, self.rules.release, absent), self.rules)
        if asked is None:
            return reference.filter_leniently(pod, snapshot, self.rules, among, patience)
        gone = self._filtered(asked, known, patience).decision
        if not gone.rejected:
            return gone
        again = self.filter_nodes(pod, snapshot, list(gone.rejected), patience)
        there = frozenset(again.feasible)
        return reference.lenient(gone, there, known.order)

    def preempt(
        self,
        pod: Pod,
        snapshot: Snapshot,
        potential: Collection[str] | None = None,
        among: Collection[str] | None = None,
        patience: Patience = endless,
    ) -> PreemptionDecision:
        """Do the same as :func:`policies.preemption.reference_engine.preempt`."""
        known = self._known(snapshot, among)
        asked = self._ask(pod, snapshot) if snapshot.nodes else None
        if asked is None:
            return reference.preempt(pod, snapshot, self.rules, potential, among, patience)
        filtered = self._filtered(asked, known, patience)
        status = nominated_status(pod, filtered.decision.rejected, self.rules)
        reason = ineligibility(pod, snapshot, status)
        if reason is not None:
            return self._ineligible(asked, filtered, reason)
        rows = _potential(asked, filtered, potential)
        return self._decided(asked, filtered, rows, asked.tried(rows, patience))

    def _known(self, snapshot: Snapshot, among: Collection[str] | None) -> _Known:
        """Return the rows of the names that are known; all rows for None."""
        self._columns.follow(snapshot)
        if among is None:
            return _Known(tuple(self._columns.names), _EVERY_ROW, tuple(snapshot.nodes))
        names, rows = self._columns.row_names.known(among)
        return _Known(names, rows, names)

    def _leaving(self, rows: Rows) -> list[str]:
        """Return the names of those of ``rows`` that have departing pods."""
        columns = self._columns
        if not columns.departing:
            return []
        near = np.zeros(len(columns.names), np.bool_)
        near[rows] = True
        return [name for name in columns.departing if near[columns.index[name]]]

    def _ask(self, pod: Pod, snapshot: Snapshot) -> Question | None:
        self._columns.follow(snapshot)
        return question(Asked(pod, self._columns, snapshot, self.rules.release), self.rules)

    def _filter(
        self, pod: Pod, snapshot: Snapshot, known: _Known, patience: Patience
    ) -> FilterDecision:
        asked = self._ask(pod, snapshot)
        if asked is None:
            return reference.filter_nodes(pod, snapshot, self.rules, known.order, patience)
        return self._filtered(asked, known, patience).decision

    def _filtered(self, asked: Question, known: _Known, patience: Patience) -> _Filtered:
        pod, rules = asked.asked.pod, self.rules
        codes = _judged(asked, known.rows, patience)
        decision = FilterDecision(
            pod,
            _feasible(known, codes),
            ByName(known.names, codes, asked.rejections),
            unjudged=unjudged(pod, asked.asked.snapshot, rules.release, rules.filters),
        )
        return _Filtered(known.rows, codes, decision)

    def _failure(self, asked: Question, filtered: _Filtered) -> str:
        """Return the event's first sentence, which counts the reasons of filtering."""
        counts = count_reasons(filtered.codes, asked.rejections)
        return wording.unfit(len(filtered.codes), None, counts, self.rules.release)

    def _ineligible(self, asked: Question, filtered: _Filtered, reason: str) -> PreemptionDecision:
        sentence = wording.ineligible(reason, self._first(filtered))
        return PreemptionDecision(
            filtered.decision.pod,
            eligible=False,
            reason=reason,
            chosen=None,
            rejected=filtered.decision.rejected,
            message=f"{self._failure(asked, filtered)} {sentence}",
            unjudged=filtered.decision.unjudged,
        )

    def _decided(
        self, asked: Question, filtered: _Filtered, rows: Bools, tried: Tried
    ) -> PreemptionDecision:
        order = self.rules.policy.candidates
        best = tried.best
        names = tuple(self._columns.names)
        rejected = ByName(names, _why_not(asked, filtered, tried), asked.rejections)
        if best:
            outcome = wording.placed(best[0], self.rules.release)
        else:
            first = self._first(filtered)
            outcome = _helpless(asked, len(rejected), rows, tried, first)
        return PreemptionDecision(
            filtered.decision.pod,
            eligible=True,
            reason="",
            chosen=best[0] if best else None,
            candidates=tried.candidates,
            rejected=rejected,
            decided_by=order.separating(*best) if len(best) > 1 else None,
            message=" ".join(part for part in (self._failure(asked, filtered), outcome) if part),
            unjudged=filtered.decision.unjudged,
            untried=tried.untried,
        )

    def _first(self, filtered: _Filtered) -> str:
        snapshot, release = self._columns.snapshot, self.rules.release
        return wording.before_preemption(filtered.decision, snapshot, release)


def _helpless(asked: Question, nodes: int, rows: Bools, tried: Tried, first: str) -> str:
    needless = np.flatnonzero(needs_nobody(tried.codes)).tolist()
    rejections, names = asked.rejections, asked.asked.columns.names
    errors = [str(rejections.of(int(tried.codes[row]), names[row])) for row in needless]
    reasons = count_reasons(tried.codes, rejections)
    count = int(np.count_nonzero(rows)) - tried.untried
    return wording.helpless(nodes, count, reasons, errors, first)


def _departing_on(columns: Columns, names: Collection[str]) -> Bools:
    """Mark the departing pods on some nodes, (depth, width)."""
    flags = columns.cells.used()[FLAGS]
    marks = np.zeros(flags.shape, np.bool_)
    rows = [columns.index[name] for name in names]
    marks[:, rows] = flags[:, rows] & DEPARTING != 0
    return marks


def _judged(asked: Question, rows: Rows, patience: Patience) -> Codes:
    """Evaluate some rows; if these are many, evaluate all, which avoids a copy."""
    width = len(asked.by_hand)
    if isinstance(rows, slice) or len(rows) * _MANY < width:
        return asked.filtered(asked.asked.view(rows), patience)
    return asked.filtered(asked.asked.everything, patience)[rows]


def _feasible(known: _Known, codes: Codes) -> Sequence[str]:
    """Return the names that fit, in the order of results."""
    refused = int(np.count_nonzero(codes))
    if refused == 0:
        return known.order
    if refused == len(codes):
        return ()
    judged = zip(known.names, codes.tolist(), strict=True)
    fitting = {name for name, code in judged if code == FITS}
    return tuple(name for name in known.order if name in fitting)


def _potential(asked: Question, filtered: _Filtered, given: Collection[str] | None) -> Bools:
    """Mark the rows to try: those ``given``, or those that evicting pods might help."""
    columns = asked.asked.columns
    rows = np.zeros(len(columns.names), np.bool_)
    if given is None:
        rows[filtered.rows] = asked.rejections.resolvable()[filtered.codes]
    else:
        rows[[columns.index[name] for name in given if name in columns.index]] = True
    return rows


def _why_not(asked: Question, filtered: _Filtered, tried: Tried) -> Codes:
    """Return the status of each row that is no candidate: of the dry run, or else of filtering."""
    feasible = asked.rejections.code(FEASIBLE)
    codes = np.zeros(len(tried.codes), np.int32)
    codes[filtered.rows] = np.where(filtered.codes == FITS, feasible, filtered.codes)
    codes = np.where(tried.codes == FITS, codes, tried.codes)
    codes[tried.found] = FITS
    return codes
