"""Explanation of a kubelet's rounds over samples of its stats.

The result of a round is explained in sentences: why no pod is evicted, and what that depends on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypedDict

from extender.eviction.input_files import NodeFiles
from extender.eviction.scenario import EvictionDocument, eviction_document
from extender.explain.decisions import PrecedenceDocument
from policies.eviction.config import INTERVAL_NS, ResolvedConfig
from policies.eviction.filesystems import DEDICATED_IMAGES, ONE_FILESYSTEM, SPLIT, Layout
from policies.eviction.manager import (
    SyncInput,
    SyncOutcome,
    SyncResult,
    finish_after_reclaim,
    synchronize,
)
from policies.eviction.manager_state import ManagerState
from policies.eviction.observations import observe
from policies.eviction.ranking import PodUsage, ranking_steps
from policies.eviction.signals import Signal
from policies.eviction.stats import Summary
from policies.eviction.thresholds import Threshold
from policies.kubernetes.duration import format_duration

LAYOUTS = {"one": ONE_FILESYSTEM, "dedicated-imagefs": DEDICATED_IMAGES, "split": SPLIT}
"""Layouts by their names on the command line."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_SENTENCES: Final[Mapping[SyncOutcome, str]] = {
    SyncOutcome.UNWATCHED: "there are no thresholds, and limits of local storage are not enforced",
    SyncOutcome.UNMEASURED: "no stats are available, so no decision is made",
    SyncOutcome.RELIEVED: "node-level reclaim is sufficient, so no pod is evicted",
    SyncOutcome.UNRANKED: "no pod is ranked, because the kubelet's first round failed",
    SyncOutcome.EMPTY: "eviction thresholds have been met, but no pods are active to evict",
    SyncOutcome.ALL_CRITICAL: "unable to evict any pods from the node: all of them are critical",
}


def result_message(sync: SyncResult) -> str:
    """Return the kubelet's message for the evicted pod; or why no pod is evicted."""
    if sync.evictions:
        return sync.evictions[0].message
    return sync.error or "; ".join((*_no_eviction_reasons(sync), *_missing_observation_notes(sync)))


def result_notes(sync: SyncResult) -> list[str]:
    """Return notes on a round: grace periods, stale or missing observations, node-level reclaim."""
    found = [*_grace_period_notes(sync), *_stale_notes(sync), *_missing_observation_notes(sync)]
    if sync.outcome in (SyncOutcome.EVICTED, SyncOutcome.EMPTY, SyncOutcome.ALL_CRITICAL):
        found.extend(_reclaim_notes(sync))
    return found


def _no_eviction_reasons(sync: SyncResult) -> Iterator[str]:
    if sync.outcome is not SyncOutcome.CALM:
        yield _SENTENCES[sync.outcome]
        return
    reasons = [*_grace_period_notes(sync), *_stale_notes(sync)]
    yield from reasons or ["no threshold is met"]


def _grace_period_notes(sync: SyncResult) -> Iterator[str]:
    for threshold, since in sync.state.first_observed_at.items():
        if threshold not in sync.state.thresholds_met:
            so_far = format_duration(sync.input.now_ns - since)
            grace = format_duration(threshold.grace_ns)
            yield f"{threshold} is met for {so_far} of its grace period of {grace}"


def _stale_notes(sync: SyncResult) -> Iterator[str]:
    fresh = {threshold.signal for threshold in sync.triggered}
    for signal in _signals(sync.state.thresholds_met):
        if signal not in fresh:
            yield f"the stats of {signal} are stale, so it does not trigger an eviction"


def _missing_observation_notes(sync: SyncResult) -> Iterator[str]:
    if sync.input.stats is None or sync.outcome in (SyncOutcome.REFUSED, SyncOutcome.UNWATCHED):
        return
    signals = _signals(sync.config.config.thresholds)
    missing = [signal for signal in signals if signal not in sync.state.observations]
    if missing:
        yield f"no observation found for eviction signal {', '.join(missing)}"


def _reclaim_notes(sync: SyncResult) -> Iterator[str]:
    configuration = sync.config.config
    actions = configuration.layout.reclaim_actions(sync.triggered[0].signal, configuration.release)
    if actions:
        done = " and ".join(action.value for action in actions)
        yield f"the node would {done} first; this explanation assumes that it frees nothing"


def _signals(thresholds: Sequence[Threshold]) -> list[Signal]:
    return list(dict.fromkeys(threshold.signal for threshold in thresholds))


class SampleDocument(TypedDict):
    """The summary of one round."""

    at: str
    conditions: list[str]
    evict: str | None


class EvictDocument(TypedDict):
    """The output of ``explain evict -o json``: the last round, and a summary of all rounds."""

    thresholdsMet: list[str]
    conditions: list[str]
    order: list[str]
    evict: str | None
    gracePeriodSeconds: int
    message: str
    because: list[PrecedenceDocument]
    evictions: list[EvictionDocument]
    layout: str
    notes: list[str]
    samples: list[SampleDocument]


def run_rounds(config: ResolvedConfig, files: NodeFiles, now_ns: int | None) -> list[SyncResult]:
    """Run one round per sample; the pods are the same in all rounds.

    The time of a round is the latest time of its stats, but never before the previous round;
    without times, it is an interval after the previous round. The last round is at ``now_ns``, if
    set. Node-level reclaim frees nothing.
    """
    state, rounds, at = ManagerState(), list[SyncResult](), 0
    for sample in files.samples:
        at = _round_time(sample, at, first=not rounds)
        if now_ns is not None and sample is files.samples[-1]:
            at = now_ns
        sync = synchronize(config, state, SyncInput(at, files.pods, sample))
        if sync.reclaim:
            sync = finish_after_reclaim(sync, sample)
        state = sync.state
        rounds.append(sync)
    return rounds


def evict_document(rounds: Sequence[SyncResult]) -> EvictDocument:
    """Return the JSON document of the last of these rounds."""
    last = rounds[-1]
    chosen = last.evictions[0] if last.evictions else None
    return {
        "thresholdsMet": [str(threshold) for threshold in last.state.first_observed_at],
        "conditions": list(last.state.pressures),
        "order": [each.pod.key for each in last.ranking],
        "evict": None if chosen is None else chosen.pod.key,
        "gracePeriodSeconds": 0 if chosen is None else chosen.grace_seconds,
        "message": result_message(last),
        "because": (
            precedence_documents(last.ranking, last.triggered[0].signal) if last.ranking else []
        ),
        "evictions": [eviction_document(each.pod.key, each) for each in last.evictions],
        "layout": layout_name(last.config.config.layout),
        "notes": result_notes(last),
        "samples": [_sample(each) for each in rounds],
    }


def layout_name(layout: Layout) -> str:
    """Return the command-line name of a layout."""
    return next(name for name, known in LAYOUTS.items() if known == layout)


def format_time(nanoseconds: int) -> str:
    """Format a time as Kubernetes does."""
    time = _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    return time.isoformat().replace("+00:00", "Z")


def precedence_documents(ranking: Sequence[PodUsage], signal: Signal) -> list[PrecedenceDocument]:
    """Return, for each pod of a ranking, the criterion that ranks it ahead of the next."""
    return [
        {"pod": each.pod.key, "ahead_of": each.ahead_of.key, "criterion": each.criterion}
        for each in ranking_steps(ranking, signal)
    ]


def _sample(sync: SyncResult) -> SampleDocument:
    return {
        "at": format_time(sync.input.now_ns),
        "conditions": list(sync.state.pressures),
        "evict": sync.evictions[0].pod.key if sync.evictions else None,
    }


def _round_time(sample: Summary, before: int, *, first: bool) -> int:
    times = [each.time_ns for each in observe(sample.node).values() if each.time_ns is not None]
    if times:
        return max(before, *times)
    return before if first else before + INTERVAL_NS
