"""Explanation of one kubelet's rounds over samples of its stats."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TypedDict

from extender.eviction import telling
from extender.eviction.files import NodeFiles
from policies.eviction.configuration import INTERVAL_NS, ResolvedConfig
from policies.eviction.deciding import SyncInput, SyncResult, finish_after_reclaim, synchronize
from policies.eviction.filesystems import DEDICATED_IMAGES, ONE_FILESYSTEM, SPLIT, Layout
from policies.eviction.hysteresis import ManagerState
from policies.eviction.messages import Eviction
from policies.eviction.observations import observe
from policies.eviction.ranking import ranking_steps
from policies.eviction.stats import Summary

LAYOUTS = {"one": ONE_FILESYSTEM, "dedicated-imagefs": DEDICATED_IMAGES, "split": SPLIT}
"""Layouts by their names on the command line."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class EvictionDocument(TypedDict):
    """A pod that is evicted."""

    pod: str
    gracePeriodSeconds: int
    message: str
    disruptionTarget: bool


class RankingStepDocument(TypedDict):
    """The criterion that ranks a pod directly ahead of another."""

    pod: str
    ahead_of: str
    criterion: str


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
    because: list[RankingStepDocument]
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
        "order": [standing.pod.key for standing in last.ranking],
        "evict": None if chosen is None else chosen.pod.key,
        "gracePeriodSeconds": 0 if chosen is None else chosen.grace_seconds,
        "message": telling.result_message(last),
        "because": _ranking_steps(last),
        "evictions": [_eviction(each) for each in last.evictions],
        "layout": layout_name(last.config.config.layout),
        "notes": telling.result_notes(last),
        "samples": [_sample(each) for each in rounds],
    }


def layout_name(layout: Layout) -> str:
    """Return the command-line name of a layout."""
    return next(name for name, known in LAYOUTS.items() if known == layout)


def format_time(nanoseconds: int) -> str:
    """Format a time as Kubernetes does."""
    written = _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    return written.isoformat().replace("+00:00", "Z")


def _ranking_steps(sync: SyncResult) -> list[RankingStepDocument]:
    ranking = sync.ranking
    if not ranking:
        return []
    return [
        {"pod": each.pod.key, "ahead_of": each.ahead_of.key, "criterion": each.criterion}
        for each in ranking_steps(ranking, sync.triggered[0].signal)
    ]


def _eviction(eviction: Eviction) -> EvictionDocument:
    return {
        "pod": eviction.pod.key,
        "gracePeriodSeconds": eviction.grace_seconds,
        "message": eviction.message,
        "disruptionTarget": eviction.condition is not None,
    }


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
