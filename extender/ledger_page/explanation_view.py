"""The document of ``explain preempt -o html``: a decision as the page of the ledger shows it.

A decision that is explained answers no call, so nothing follows it and no entry is written. It has
what an entry leaves out: bars of more candidates, and the names of nodes and of protected pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.resources import files
from itertools import islice
from typing import Final

import msgspec

from extender.ledger.entry import LedgerEntry, LedgerRecord, Outcome, entry_id
from extender.ledger.entry_builder import EntryBuilder, ledger_candidate
from extender.ledger_page.decision_view import DecisionView, decision_view, no_links
from extender.ledger_page.documents import PACKAGE, render_document
from extender.ledger_page.view import View
from extender.observability.decision_log import count_reasons
from extender.protocol.verb_context import AnswerContext, VerbResult
from policies.kubernetes.snapshot import Snapshot
from policies.preemption.decision import PreemptionDecision, freed_devices
from policies.preemption.explanation import PreemptionExplanation
from policies.preemption.filtering.status import (
    describe_not_evaluated,
    explained,
    resolution_note,
)
from policies.preemption.policy import SchedulerRules

_SHOWN_CANDIDATES: Final = 12
_SHOWN_NAMES: Final = 20


class ReasonGroup(View, frozen=True, kw_only=True):
    """Nodes or pods with one reason: how many, and the names of the first ones."""

    reason: str
    count: int
    names: tuple[str, ...]


class ExplanationView(View, frozen=True, kw_only=True):
    """A decision, and what explains it; ``notes`` are lines for people."""

    sentence: str
    policy: str
    release: str
    decision: DecisionView
    rejected: tuple[ReasonGroup, ...]
    protected: tuple[ReasonGroup, ...]
    notes: tuple[str, ...]


def explanation_document(
    explanation: PreemptionExplanation, snapshot: Snapshot, rules: SchedulerRules
) -> str:
    """Return an explanation as one HTML document; ``snapshot`` has the time of the decision."""
    template = files(PACKAGE).joinpath("templates", "explanation.html").read_text()
    return render_document(template, page=explanation_view(explanation, snapshot, rules))


def explanation_view(
    explanation: PreemptionExplanation, snapshot: Snapshot, rules: SchedulerRules
) -> ExplanationView:
    """Return the content of the document."""
    decision = explanation.decision
    entry = _entry(explanation, snapshot, rules)
    shown = decision_view(LedgerRecord(entry, Outcome()), no_links, None)
    outcome = next(iter(decision.describe()))
    return ExplanationView(
        sentence=shown.headline if decision.chosen is not None else f"{outcome}.",
        policy=entry.policy,
        release=entry.release,
        decision=shown,
        rejected=_grouped(
            (f"{explained(each)}{resolution_note(each)}", node)
            for node, each in sorted(decision.rejected.items())
        ),
        protected=_grouped(
            (each.because, f"{each.pod.key} on {each.pod.node_name}")
            for each in explanation.protected
        ),
        notes=tuple(_notes(decision)),
    )


def _entry(
    explanation: PreemptionExplanation, snapshot: Snapshot, rules: SchedulerRules
) -> LedgerEntry:
    """Return the entry of the decision, with the best candidates in full."""
    decision, now_ns = explanation.decision, snapshot.now_ns
    context = AnswerContext(now_ns, "", "preempt", snapshot.generation, "", 0.0)
    entry = EntryBuilder(most_candidates=2).entry(
        entry_id(now_ns, 0),
        "",
        VerbResult(bytes, decision, decision.chosen),
        snapshot,
        rules,
        context,
        count_reasons(decision.rejected),
    )
    kept = {each.node for each in entry.kept}
    ranked = explanation.order.sort(decision.candidates.values())
    others = (each for each in ranked if each.node not in kept)
    full = (ledger_candidate(each, snapshot, explanation.violated) for each in others)
    return msgspec.structs.replace(
        entry, kept=(*entry.kept, *islice(full, _SHOWN_CANDIDATES - len(kept)))
    )


def _grouped(reasons: Iterable[tuple[str, str]]) -> tuple[ReasonGroup, ...]:
    """Group names by reason, the largest groups first."""
    found: dict[str, list[str]] = {}
    for reason, name in reasons:
        found.setdefault(reason, []).append(name)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(
        ReasonGroup(reason=reason, count=len(names), names=tuple(names[:_SHOWN_NAMES]))
        for reason, names in ordered
    )


def _notes(decision: PreemptionDecision) -> Iterator[str]:
    chosen = decision.chosen
    if chosen is not None and chosen.freed_claims:
        yield freed_devices(chosen)
    if chosen is not None and chosen.elsewhere:
        yield f"no extender can confirm {chosen.node}: a pod group has victims on other nodes"
    if decision.search is not None:
        yield str(decision.search)
    if decision.message:
        yield decision.message
    yield from describe_not_evaluated(decision.not_evaluated)
