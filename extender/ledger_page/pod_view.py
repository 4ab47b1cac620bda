"""The page of a pod: every decision that names it, what followed, and what its owner can do."""

from __future__ import annotations

from collections.abc import Sequence

from extender.ledger.advice import ADVICE, advice
from extender.ledger.entry import LedgerEntry, LedgerRecord, LedgerShadow, Outcome, format_id
from extender.ledger.outcome_text import preemptor_followed, victim_followed
from extender.ledger.why import decision_account
from extender.ledger_page.decision_view import SpareLinks
from extender.ledger_page.sentences import headline, victim_sentence
from extender.ledger_page.view import PodLink, View, decision_url, pod_link


class StoryEntry(View, frozen=True, kw_only=True):
    """A decision that names the pod; ``role`` is ``victim`` or ``preemptor``."""

    url: str
    at: str
    role: str
    sentence: str
    followed: str
    spare: str


class PodRecord(View, frozen=True, kw_only=True):
    """A decision as the ledger has it, which ``reprieve why --server`` reads."""

    id: str
    at: str
    entry: LedgerEntry
    outcome: Outcome
    shadows: tuple[LedgerShadow, ...]


class AccountTopic(View, frozen=True, kw_only=True):
    """What is known about a topic of a decision."""

    topic: str
    text: str


class PodView(View, frozen=True, kw_only=True):
    """The page of a pod, the oldest decision first; ``truncated`` if older ones are left out.

    ``account`` is that of ``reprieve why`` about the decision that ``summary`` summarizes.
    ``records`` are the same decisions as in ``story``; only JSON has them.
    """

    pod: PodLink
    summary: str
    hints: tuple[str, ...]
    spare: str
    account: tuple[AccountTopic, ...]
    story: tuple[StoryEntry, ...]
    truncated: bool
    records: tuple[PodRecord, ...]


def pod_view(
    key: str, newest_first: Sequence[LedgerRecord], limit: int, spare_links: SpareLinks
) -> PodView:
    """Return the page of a pod that at least one record names."""
    records = newest_first[:limit]
    story = tuple(_entry(key, record, spare_links) for record in reversed(records))
    evicted = [(record, place) for record in records if (place := _place(key, record)) is not None]
    last = evicted[0][0] if evicted else records[0]
    pod = last.entry.victims[evicted[0][1]] if evicted else last.entry.pod
    spare = next((each.spare for each in reversed(story) if each.spare), "")
    return PodView(
        pod=pod_link(pod),
        summary=victim_sentence(*evicted[0]) if evicted else headline(last),
        hints=tuple(advice(pod, last, len(evicted))) if evicted else (),
        spare=spare,
        account=tuple(
            AccountTopic(**each)
            for each in decision_account(last, key)["account"]
            if each["topic"] != ADVICE
        ),
        story=story,
        truncated=len(newest_first) > limit,
        records=tuple(_record(each) for each in reversed(records)),
    )


def _record(record: LedgerRecord) -> PodRecord:
    entry = record.entry
    return PodRecord(
        id=format_id(entry.id),
        at=entry.at,
        entry=entry,
        outcome=record.outcome,
        shadows=record.shadows,
    )


def _place(key: str, record: LedgerRecord) -> int | None:
    victims = record.entry.victims
    return next((place for place, victim in enumerate(victims) if victim.key == key), None)


def _entry(key: str, record: LedgerRecord, spare_links: SpareLinks) -> StoryEntry:
    entry, place = record.entry, _place(key, record)
    links = spare_links(entry)
    if place is None:
        return StoryEntry(
            url=decision_url(entry.id),
            at=entry.at,
            role="preemptor",
            sentence=headline(record),
            followed=preemptor_followed(record) if entry.victims else "",
            spare="",
        )
    return StoryEntry(
        url=decision_url(entry.id),
        at=entry.at,
        role="victim",
        sentence=victim_sentence(record, place),
        followed=victim_followed(record, place),
        spare=links[place].url if links else "",
    )
