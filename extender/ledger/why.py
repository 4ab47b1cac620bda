"""Why a pod was preempted, or which pods it preempted: the sentences of its records.

The document has the newest preemption in full, and a sentence about each other decision. Its
account consists of lines, each about a topic such as ``node`` or ``decided by``, so that a command,
a page and a tool show the same text. Every sentence is made from an entry and its outcome alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NotRequired, TypedDict, final

from extender.ledger.advice import ADVICE, advice
from extender.ledger.criterion_text import criterion_text
from extender.ledger.entry import (
    LedgerCandidate,
    LedgerEntry,
    LedgerPod,
    LedgerRecord,
    LedgerShadow,
    Outcome,
    format_id,
)
from extender.ledger.outcome_text import (
    elapsed_text,
    preemptor_followed,
    victim_followed,
    victim_outcome,
)
from extender.ledger.shadow_text import shadow_text

_MOST_NAMED: Final = 5
_SECOND_NS: Final = 10**9

Role = Literal["preemptor", "victim"]


class AccountLine(TypedDict):
    """A line of an account: its topic, and what is known about it."""

    topic: str
    text: str


class ComparisonDocument(TypedDict):
    """The values of the chosen candidate and the runner-up by a criterion; the smaller is better.

    ``shown`` and ``runnerUpShown`` are the same values with their units. ``decides`` is true for
    the first criterion by which they differ.
    """

    criterion: str
    value: int
    runnerUpValue: int
    shown: str
    runnerUpShown: str
    decides: bool


class DecisionSummary(TypedDict):
    """A decision about a pod in one sentence."""

    id: str
    at: str
    role: Role
    summary: str


class SparingChangeDocument(TypedDict):
    """A change that would have spared a victim, and what would have been decided then."""

    change: str
    outcome: str


class DecisionAccount(DecisionSummary):
    """A decision about a pod in full."""

    account: list[AccountLine]
    comparison: list[ComparisonDocument]
    entry: LedgerEntry
    outcome: Outcome
    shadows: tuple[LedgerShadow, ...]


@final
class WhyDocument(TypedDict):
    """The output of ``why -o json``.

    ``decision`` is the newest decision about a pod that names victims, or the newest one if none
    does: a preemptor is filtered again and again. ``others`` are the other ones, the newest first.
    ``counterfactuals`` is present for a victim if the ledger keeps the inputs of the decision.
    """

    pod: str
    decision: DecisionAccount
    others: list[DecisionSummary]
    counterfactuals: NotRequired[list[SparingChangeDocument]]


def why_document(key: str, uid: str, records: Sequence[LedgerRecord]) -> WhyDocument | None:
    """Return the document of the pod ``namespace/name``, or None if no record is about it.

    A ``uid`` that is not empty selects one of several pods that had the same name.
    """
    found = [each for each in records if is_about(each.entry, key, uid)]
    found.sort(key=lambda each: -each.entry.id)
    if not found:
        return None
    shown = next((each for each in found if each.entry.victims), found[0])
    return {
        "pod": key,
        "decision": decision_account(shown, key),
        "others": [decision_summary(each, key) for each in found if each is not shown],
    }


def is_about(entry: LedgerEntry, key: str, uid: str = "") -> bool:
    """Return whether a pod, of this UID if it is given, is the preemptor or a victim."""
    return any(pod.key == key and uid in ("", pod.uid) for pod in (entry.pod, *entry.victims))


def decision_account(record: LedgerRecord, key: str) -> DecisionAccount:
    """Return a decision in full, told for the pod ``key``."""
    return {
        **decision_summary(record, key),
        "account": [{"topic": topic, "text": text} for topic, text in _account(record, key)],
        "comparison": compare(record.entry),
        "entry": record.entry,
        "outcome": record.outcome,
        "shadows": record.shadows,
    }


def decision_summary(record: LedgerRecord, key: str) -> DecisionSummary:
    """Return a decision in one sentence, told for the pod ``key``: a victim, or the preemptor."""
    entry = record.entry
    place = _place_of_victim(entry, key)
    return {
        "id": format_id(entry.id),
        "at": entry.at,
        "role": "preemptor" if place is None else "victim",
        "summary": (
            _preemptor_sentence(entry) if place is None else _victim_sentence(record, place)
        ),
    }


def compare(entry: LedgerEntry) -> list[ComparisonDocument]:
    """Return the values of the chosen candidate and the runner-up; nothing without a runner-up."""
    chosen, second = entry.chosen, entry.runner_up
    if chosen is None or second is None:
        return []
    return [
        {
            "criterion": name,
            "value": value,
            "runnerUpValue": other,
            "shown": criterion_text(name, value, len(chosen.victims)),
            "runnerUpShown": criterion_text(name, other, len(second.victims)),
            "decides": name == entry.decided_by,
        }
        for name, value, other in zip(
            entry.criteria, chosen.criteria, second.criteria, strict=False
        )
    ]


def _place_of_victim(entry: LedgerEntry, key: str) -> int | None:
    return next((i for i, victim in enumerate(entry.victims) if victim.key == key), None)


def _victim_sentence(record: LedgerRecord, place: int) -> str:
    entry = record.entry
    verb = "was preempted" if victim_outcome(record, place).gone_ns else "was named as a victim"
    return f"{entry.victims[place].key} {verb} on {entry.node} for {entry.pod.key}"


def _preemptor_sentence(entry: LedgerEntry) -> str:
    pod, victims = entry.pod.key, len(entry.victims)
    if entry.fallback:
        return f"no decision about {pod}: {entry.fallback}"
    if entry.fits is not None:
        return f"{pod} fits {_count(entry.fits, 'node')}"
    if entry.node is None:
        return f"no preemption makes room for {pod}"
    if not victims:
        return f"{pod} needs no victims on {entry.node}"
    return f"{pod} preempts {_count(victims, 'pod')} on {entry.node}"


def _account(record: LedgerRecord, key: str) -> Iterator[tuple[str, str]]:
    """Yield the topics and texts about one decision."""
    entry, chosen = record.entry, record.entry.chosen
    place = _place_of_victim(entry, key)
    yield "at", entry.at
    yield "preemptor", _pod_text(entry.pod)
    if place is not None:
        yield "victim", _pod_text(entry.victims[place])
    if entry.fallback:
        yield "fallback", entry.fallback
    if chosen is not None:
        yield "node", f"{chosen.node}, {_choice_text(entry)}"
        yield "decided by", _criterion_sentence(entry)
        if place is None:
            yield from (("victim", _pod_text(each)) for each in entry.victims)
        else:
            yield from _other_victims(entry, place)
            yield "why this pod", _why_this_pod(entry, chosen, entry.victims[place])
        yield "spared there", _spared_text(chosen)
        if chosen.violated_pdbs:
            yield "budgets violated", ", ".join(chosen.violated_pdbs)
    yield from _rejections(entry)
    yield from (("followed", text) for text in _followed(record, place))
    if place is not None:
        yield from ((ADVICE, text) for text in advice(entry.victims[place], record))
    yield from (("note", text) for text in entry.notes)
    for each in record.shadows:
        yield "shadow", f"{each.policy}: {shadow_text(entry, each.entry)}"
    policy = f", policy {entry.policy}, rules of {entry.release}" if entry.policy else ""
    observed = ", observed: the choice was kube-scheduler's own" if entry.observed else ""
    yield "decision", f"{format_id(entry.id)}, {entry.verb}{policy}{observed}"


def _choice_text(entry: LedgerEntry) -> str:
    if entry.candidates < 2:
        return "the only candidate"
    return f"the best of {entry.candidates} candidates"


def _criterion_sentence(entry: LedgerEntry) -> str:
    second = entry.runner_up
    if entry.decided_by is None or second is None:
        return "nothing: there was no other candidate"
    for each in compare(entry):
        if each["decides"]:
            values = f"{each['shown']}, and {each['runnerUpShown']} on {second.node}"
            return f"{entry.decided_by}: {values}, the runner-up"
    return f"{entry.decided_by}: {second.node}, the runner-up, is equal by all criteria"


def _other_victims(entry: LedgerEntry, place: int) -> Iterator[tuple[str, str]]:
    others = [each for i, each in enumerate(entry.victims) if i != place]
    if others:
        yield "also preempted", _names(others)


def _why_this_pod(entry: LedgerEntry, chosen: LedgerCandidate, victim: LedgerPod) -> str:
    """Return how the victim compares with the preemptor and with the pods that stay."""
    preemptor = entry.pod
    begin = f"its priority {victim.priority} is below {preemptor.priority} of {preemptor.key}"
    if not chosen.spared:
        return f"{begin}, and no pod that could be preempted stays on the node"
    reasons = [begin]
    more = [each for each in chosen.spared if each.priority > victim.priority]
    equal = [each for each in chosen.spared if each.priority == victim.priority]
    less = [each for each in chosen.spared if each.priority < victim.priority]
    if more:
        reasons.append(f"below that of {_names(more)}")
    if equal:
        by = f" of policy {entry.policy}" if entry.policy else ""
        reasons.append(f"equal to that of {_names(equal)}, where the order{by} decides")
    if less:
        reasons.append(f"above that of {_names(less)}, which fit beside the preemptor")
    return "; ".join(reasons)


def _spared_text(chosen: LedgerCandidate) -> str:
    return _names(chosen.spared) if chosen.spared else "no pod that could have been preempted"


def _rejections(entry: LedgerEntry) -> Iterator[tuple[str, str]]:
    if entry.node is None and entry.message:
        yield "message", entry.message
    if entry.rejected:
        counts = sorted(entry.rejected.items(), key=lambda each: (-each[1], each[0]))
        yield "rejected", "; ".join(f"{_count(n, 'node')}: {reason}" for reason, n in counts)
    for reason, pods in entry.protected.items():
        yield "protected", f"{_count(pods, 'pod')}: {reason}"
    if entry.refused_attempt:
        yield "refused", entry.refused_attempt
    for reason, nodes in entry.refused_nodes.items():
        yield "refused", f"{_count(nodes, 'node')}: {reason}"
    if entry.search:
        yield "search", entry.search


def _followed(record: LedgerRecord, place: int | None) -> Iterator[str]:
    """Yield what became of a victim and of the preemptor, or of all victims."""
    entry = record.entry
    if not entry.victims:
        return
    places = range(len(entry.victims)) if place is None else (place,)
    for each in places:
        yield victim_followed(record, each)
    yield preemptor_followed(record)


def _pod_text(pod: LedgerPod) -> str:
    known = [f"priority {pod.priority}"]
    known += [text for text in (pod.priority_class, pod.owner) if text]
    known += [f"team {pod.team}"] if pod.team else []
    known += (
        [f"had run for {elapsed_text(pod.run_seconds * _SECOND_NS)}"] if pod.run_seconds else []
    )
    return f"{pod.key} ({', '.join(known)})"


def _names(pods: Sequence[LedgerPod]) -> str:
    named = [f"{pod.key} ({pod.priority})" for pod in pods[:_MOST_NAMED]]
    more = [f"{len(pods) - _MOST_NAMED} more"] if len(pods) > _MOST_NAMED else []
    return ", ".join((*named, *more))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
