"""The page of a decision: who was preempted, for which pod, where, why, and what followed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from extender.ledger.choice_cost import choice_cost, differs
from extender.ledger.entry import (
    LedgerCandidate,
    LedgerEntry,
    LedgerPod,
    LedgerRecord,
    LedgerShadow,
    format_id,
)
from extender.ledger.outcome_text import preemptor_followed, victim_followed
from extender.ledger.shadow_text import choice_text, cost_changes
from extender.ledger_page.amounts import (
    SECOND_NS,
    count_of,
    format_amount,
    format_interval,
    time_or_empty,
)
from extender.ledger_page.criteria_table import CriterionRow, criteria_table
from extender.ledger_page.packed_bars import PackedBar, packed_bars
from extender.ledger_page.sentences import headline
from extender.ledger_page.view import Link, PodLink, View, decision_url, pod_link, pod_url


class CandidateView(View, frozen=True, kw_only=True):
    """A candidate; ``role`` is ``chosen``, ``closest rival`` or ``other``."""

    role: str
    node: str
    victims: tuple[PodLink, ...]
    spared: tuple[PodLink, ...]
    violated_budgets: tuple[str, ...]
    violations: int
    bars: tuple[PackedBar, ...]


class VictimView(View, frozen=True, kw_only=True):
    """A victim, what it lost, and what followed; ``spare`` leads to what would have spared it."""

    pod: PodLink
    uid: str
    requests: Mapping[str, str]
    run_time: str
    followed: str
    gone: str
    replacement: str
    replacement_url: str
    spare: str


class SpareView(View, frozen=True, kw_only=True):
    """What would have spared a victim; ``lines`` is None if it cannot be computed."""

    pod: str
    lines: tuple[str, ...] | None


class ShadowView(View, frozen=True, kw_only=True):
    """What a shadow policy would have chosen; ``change`` is "" if it is the same choice."""

    policy: str
    node: str
    victims: tuple[PodLink, ...]
    choice: str
    change: str


class DecisionView(View, frozen=True, kw_only=True):
    """The page of a decision; ``facts`` are its technical fields by name."""

    id: str
    url: str
    at: str
    headline: str
    verb: str
    pod: PodLink
    requests: Mapping[str, str]
    node: str
    decided_by: str
    candidates: int
    untried: str
    chosen: CandidateView | None
    rival: CandidateView | None
    others: tuple[CandidateView, ...]
    criteria: tuple[CriterionRow, ...]
    victims: tuple[VictimView, ...]
    followed: str
    spare: SpareView | None
    rejected: Mapping[str, int]
    protected: Mapping[str, int]
    refused_attempt: str
    refused_nodes: Mapping[str, int]
    notes: tuple[str, ...]
    message: str
    search: str
    shadows: tuple[ShadowView, ...]
    facts: Mapping[str, str]


SpareLinks = Callable[[LedgerEntry], Sequence[Link]]
"""Returns for each victim the link to what would have spared it, or nothing without an answer."""


def decision_view(
    record: LedgerRecord, spare_links: SpareLinks, spare: SpareView | None
) -> DecisionView:
    """Return the page; ``spare`` is what would have spared one of the victims."""
    entry = record.entry
    links = [link.url for link in spare_links(entry)] or [""] * len(entry.victims)
    kept = entry.kept
    chosen, rival = entry.chosen, entry.runner_up
    others = kept[sum(each is not None for each in (chosen, rival)) :]
    return DecisionView(
        id=format_id(entry.id),
        url=decision_url(entry.id),
        at=entry.at,
        headline=headline(record),
        verb=entry.verb,
        pod=pod_link(entry.pod),
        requests=_amounts(entry.pod),
        node=entry.node or "",
        decided_by=entry.decided_by or "",
        candidates=entry.candidates,
        untried=f"no time was left for {count_of(entry.untried, 'node')}" if entry.untried else "",
        chosen=None if chosen is None else _candidate("chosen", chosen, entry),
        rival=None if rival is None else _candidate("closest rival", rival, entry),
        others=tuple(_candidate("other", each, entry) for each in others),
        criteria=criteria_table(entry),
        victims=tuple(_victim(record, place, url) for place, url in enumerate(links)),
        followed=preemptor_followed(record) if entry.victims else "",
        spare=spare,
        rejected=_largest_first(entry.rejected),
        protected=_largest_first(entry.protected),
        refused_attempt=entry.refused_attempt,
        refused_nodes=_largest_first(entry.refused_nodes),
        notes=entry.notes,
        message=entry.message,
        search=entry.search,
        shadows=tuple(_shadow(entry, each) for each in record.shadows),
        facts=_facts(entry),
    )


def links_to_spare(entry: LedgerEntry) -> Sequence[Link]:
    """Return for each victim the link to what would have spared it."""
    url = decision_url(entry.id)
    return tuple(
        Link(label=victim.key, url=f"{url}?spare={place}#spare")
        for place, victim in enumerate(entry.victims)
    )


def no_links(_: LedgerEntry) -> Sequence[Link]:
    """Return no links, for a page that cannot compute what would have spared a victim."""
    return ()


def _candidate(role: str, candidate: LedgerCandidate, entry: LedgerEntry) -> CandidateView:
    return CandidateView(
        role=role,
        node=candidate.node,
        victims=tuple(pod_link(pod) for pod in candidate.victims),
        spared=tuple(pod_link(pod) for pod in candidate.spared),
        violated_budgets=candidate.violated_pdbs,
        violations=candidate.num_pdb_violations,
        bars=packed_bars(candidate, entry.pod),
    )


def _victim(record: LedgerRecord, place: int, spare: str) -> VictimView:
    pod, outcomes = record.entry.victims[place], record.outcome.victims
    outcome = outcomes[place] if place < len(outcomes) else None
    replacement = "" if outcome is None else outcome.replacement
    return VictimView(
        pod=pod_link(pod),
        uid=pod.uid,
        requests=_amounts(pod),
        run_time=format_interval(pod.run_seconds * SECOND_NS) if pod.run_seconds else "",
        followed=victim_followed(record, place),
        gone="" if outcome is None else time_or_empty(outcome.gone_ns),
        replacement=replacement,
        replacement_url=pod_url(pod.namespace, replacement) if replacement else "",
        spare=spare,
    )


def _shadow(entry: LedgerEntry, shadow: LedgerShadow) -> ShadowView:
    chosen = shadow.entry
    changes = cost_changes(choice_cost(entry), choice_cost(chosen))
    return ShadowView(
        policy=shadow.policy,
        node=chosen.node or "",
        victims=tuple(pod_link(pod) for pod in chosen.victims),
        choice=choice_text(chosen),
        change=(", ".join(changes) or "no change in cost") if differs(entry, chosen) else "",
    )


def _amounts(pod: LedgerPod) -> Mapping[str, str]:
    return {name: format_amount(name, amount) for name, amount in pod.requests.items()}


def _largest_first(counts: Mapping[str, int]) -> Mapping[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _facts(entry: LedgerEntry) -> Mapping[str, str]:
    facts = {
        "verb": entry.verb,
        "policy": entry.policy,
        "mode": "observe: the choice was kube-scheduler's own" if entry.observed else "",
        "kube-scheduler release": entry.release,
        "decided in": f"{entry.took_microseconds / 1000:.1f} ms",
        "request ID": entry.request_id,
        "generation of the snapshot": str(entry.generation) if entry.generation else "",
        "resource version of pods": entry.pods_version,
        "digest of the call": entry.digest,
        "digest of the inputs": entry.snapshot,
        "fallback": entry.fallback,
    }
    return {name: value for name, value in facts.items() if value}
