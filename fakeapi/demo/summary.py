"""The final summary: rows of tables, made from one observed state.

Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from fakeapi.controlplane.scheduler.extender_trace import ExtenderCall
from fakeapi.demo.decisions import ExplainedDecision
from fakeapi.demo.event_feed import describe_choice, short_names
from fakeapi.demo.observed_state import ObservedState
from fakeapi.demo.scenarios.preemption_story import LoopScenario


@dataclass(frozen=True, slots=True)
class PreemptionSummary:
    """One decision: preemptor, node, victims, deciding criterion, reprieved pods with reasons."""

    preemptor: str
    node: str
    victims: tuple[str, ...]
    reason: str
    reprieved: tuple[str, ...]
    pdb_violations: int


@dataclass(frozen=True, slots=True)
class ReplacementSummary:
    """Pods that replaced others; ``outcome`` is their node, or why they have none."""

    pods: tuple[str, ...]
    subset: str
    outcome: str


@dataclass(frozen=True, slots=True)
class EvictionSummary:
    """A pod that its kubelet evicted, with the eviction message."""

    pod: str
    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class CallSummary:
    """Calls of a verb: their number, their outcomes, and the median times in milliseconds.

    ``round_trip`` is the time until the scheduler had the answer, ``deciding`` the extender's time
    for the decision. ``notes`` are oddities of answers that kube-scheduler accepts silently, with
    their counts.
    """

    verb: str
    count: int
    outcomes: str
    round_trip: float
    deciding: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """The content of all tables."""

    preemptions: tuple[PreemptionSummary, ...]
    replacements: tuple[ReplacementSummary, ...]
    evictions: tuple[EvictionSummary, ...]
    calls: tuple[CallSummary, ...]


def summarize(state: ObservedState, scenario: LoopScenario, pace: float) -> Summary:
    """Summarize an observed state; the cluster's clock ran ``pace`` times as fast as the host's."""
    return Summary(
        _preemptions(state, scenario),
        _replacements(state),
        tuple(EvictionSummary(pod.key, pod.node, pod.message.strip()) for pod in state.evicted()),
        _calls(state, pace),
    )


def _preemptions(state: ObservedState, scenario: LoopScenario) -> tuple[PreemptionSummary, ...]:
    by_answer: dict[tuple[str, str, ExplainedDecision | None], list[str]] = {}
    for victim in state.preempted():
        answer = victim.preemptor, victim.node, state.decision_for(victim)
        by_answer.setdefault(answer, []).append(victim.pod)
    names = {pod.uid: pod.key for pod in state.pods}
    rows = [
        _preemption(names.get(uid, uid), node, pods, decision)
        for (uid, node, decision), pods in by_answer.items()
    ]
    order = {key: index for index, key in enumerate(scenario.burst_pods)}
    return tuple(sorted(rows, key=lambda row: order.get(row.preemptor, len(order))))


def _preemption(
    preemptor: str, node: str, victims: Iterable[str], decision: ExplainedDecision | None
) -> PreemptionSummary:
    if decision is None:
        return PreemptionSummary(preemptor, node, tuple(victims), "nobody knows", (), 0)
    priorities = {each.pod: each.priority for each in decision.victims}
    evicted = tuple(f"{pod} ({priorities[pod]})" for pod in victims)
    return PreemptionSummary(
        preemptor,
        node,
        evicted,
        describe_choice(decision),
        _reprieved(decision),
        decision.pdb_violations,
    )


def _reprieved(decision: ExplainedDecision) -> tuple[str, ...]:
    by_reason: dict[str, list[str]] = {}
    for pod in decision.reprieved:
        by_reason.setdefault(pod.reason, []).append(pod.pod)
    return tuple(f"{short_names(pods)}: {reason}" for reason, pods in by_reason.items())


def _replacements(state: ObservedState) -> tuple[ReplacementSummary, ...]:
    alike: dict[tuple[str, str], list[str]] = {}
    for pod in sorted(state.replacements(), key=lambda pod: (not pod.node, pod.key)):
        failure = state.scheduling_failure(pod)
        if pod.node or failure:
            outcome = f"runs on {pod.node}" if pod.node else f"FailedScheduling: {failure}"
            alike.setdefault((pod.subset, outcome), []).append(pod.key)
    return tuple(
        ReplacementSummary(tuple(pods), subset, outcome)
        for (subset, outcome), pods in alike.items()
    )


def _calls(state: ObservedState, pace: float) -> tuple[CallSummary, ...]:
    by_verb: dict[str, list[ExtenderCall]] = {}
    for each in state.exchanges:
        by_verb.setdefault(each.verb, []).append(each)
    return tuple(
        CallSummary(
            verb,
            len(exchanges),
            _counted(each.verdict.value for each in exchanges),
            _median_milliseconds(each.seconds for each in exchanges) / pace,
            _median_milliseconds(each.seconds for each in state.decisions),
            tuple(_notes(exchanges)),
        )
        for verb, exchanges in by_verb.items()
    )


def _median_milliseconds(seconds: Iterable[float]) -> float:
    return median((*seconds,) or (0.0,)) * 1000


def _notes(exchanges: Iterable[ExtenderCall]) -> list[str]:
    notes = Counter(note for each in exchanges for note in each.notes)
    return [f"{note} ({count} times)" if count > 1 else note for note, count in notes.items()]


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in Counter(words).items())
