"""The final summary: rows of tables, made from one observed state.

Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from fakeapi.controlplane.scheduler.trace import Exchange
from fakeapi.demo.deliberations import Deliberation
from fakeapi.demo.news import named, why
from fakeapi.demo.sights import Sight
from fakeapi.scenarios.loop import Story


@dataclass(frozen=True, slots=True)
class Preemption:
    """One decision: preemptor, node, victims, deciding criterion, reprieved pods with reasons."""

    preemptor: str
    node: str
    victims: tuple[str, ...]
    why: str
    spared: tuple[str, ...]
    budgets_broken: int


@dataclass(frozen=True, slots=True)
class Replacement:
    """Pods that replaced others; ``fate`` is their node, or why they have none."""

    pods: tuple[str, ...]
    subset: str
    fate: str


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that its kubelet evicted, with the eviction message."""

    pod: str
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of a verb: their number, their outcomes, and the median times in milliseconds.

    ``round_trip`` is the time until the scheduler had the answer, ``deciding`` the extender's time
    for the decision. ``notes`` are oddities of answers that kube-scheduler accepts silently, with
    their counts.
    """

    verb: str
    count: int
    verdicts: str
    round_trip: float
    deciding: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """The content of all tables."""

    preemptions: tuple[Preemption, ...]
    replacements: tuple[Replacement, ...]
    evictions: tuple[Eviction, ...]
    calls: tuple[Calls, ...]


def sum_up(sight: Sight, story: Story, pace: float) -> Summary:
    """Summarize an observed state; the cluster's clock ran ``pace`` times as fast as the host's."""
    return Summary(
        _preemptions(sight, story),
        _replacements(sight),
        tuple(Eviction(pod.key, pod.node, pod.message.strip()) for pod in sight.evicted()),
        _calls(sight, pace),
    )


def _preemptions(sight: Sight, story: Story) -> tuple[Preemption, ...]:
    by_answer: dict[tuple[str, str, Deliberation | None], list[str]] = {}
    for gone in sight.preempted():
        answer = gone.preemptor, gone.node, sight.deliberation(gone)
        by_answer.setdefault(answer, []).append(gone.pod)
    names = {pod.uid: pod.key for pod in sight.pods}
    rows = [
        _preemption(names.get(uid, uid), node, pods, told)
        for (uid, node, told), pods in by_answer.items()
    ]
    order = {key: index for index, key in enumerate(story.coming)}
    return tuple(sorted(rows, key=lambda row: order.get(row.preemptor, len(order))))


def _preemption(
    preemptor: str, node: str, victims: Iterable[str], told: Deliberation | None
) -> Preemption:
    if told is None:
        return Preemption(preemptor, node, tuple(victims), "nobody knows", (), 0)
    priorities = {each.pod: each.priority for each in told.victims}
    goes = tuple(f"{pod} ({priorities[pod]})" for pod in victims)
    return Preemption(preemptor, node, goes, why(told), _spared(told), told.budgets_broken)


def _spared(told: Deliberation) -> tuple[str, ...]:
    by_reason: dict[str, list[str]] = {}
    for pod in told.spared:
        by_reason.setdefault(pod.why, []).append(pod.pod)
    return tuple(f"{named(pods)}: {reason}" for reason, pods in by_reason.items())


def _replacements(sight: Sight) -> tuple[Replacement, ...]:
    alike: dict[tuple[str, str], list[str]] = {}
    for pod in sorted(sight.replacements(), key=lambda pod: (not pod.node, pod.key)):
        told = sight.refusal(pod)
        if pod.node or told:
            fate = f"runs on {pod.node}" if pod.node else f"FailedScheduling: {told}"
            alike.setdefault((pod.subset, fate), []).append(pod.key)
    return tuple(Replacement(tuple(pods), subset, fate) for (subset, fate), pods in alike.items())


def _calls(sight: Sight, pace: float) -> tuple[Calls, ...]:
    by_verb: dict[str, list[Exchange]] = {}
    for each in sight.exchanges:
        by_verb.setdefault(each.verb, []).append(each)
    return tuple(
        Calls(
            verb,
            len(exchanges),
            _counted(each.verdict.value for each in exchanges),
            _middle(each.seconds for each in exchanges) / pace,
            _middle(each.seconds for each in sight.deliberations),
            tuple(_notes(exchanges)),
        )
        for verb, exchanges in by_verb.items()
    )


def _middle(seconds: Iterable[float]) -> float:
    return median((*seconds,) or (0.0,)) * 1000


def _notes(exchanges: Iterable[Exchange]) -> list[str]:
    said = Counter(note for each in exchanges for note in each.notes)
    return [f"{note} ({count} times)" if count > 1 else note for note, count in said.items()]


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in Counter(words).items())
