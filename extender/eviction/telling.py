"""The result of a round in sentences: why no pod is evicted, and what the result depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from policies.eviction.deciding import SyncOutcome, SyncResult
from policies.eviction.durations import format_duration
from policies.eviction.signals import Signal
from policies.eviction.thresholds import Threshold

_SENTENCES: Final[Mapping[SyncOutcome, str]] = {
    SyncOutcome.UNWATCHED: "there are no thresholds, and limits of local storage are not kept to",
    SyncOutcome.UNMEASURED: "there are no stats, so nothing is decided",
    SyncOutcome.RELIEVED: "the node gets enough back without evicting a pod",
    SyncOutcome.UNRANKED: "no pod is ranked, since the kubelet's first round had failed",
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
            yield f"the stats of {signal} are stale, so nobody is evicted for it"


def _missing_observation_notes(sync: SyncResult) -> Iterator[str]:
    if sync.input.stats is None or sync.outcome in (SyncOutcome.REFUSED, SyncOutcome.UNWATCHED):
        return
    given = _signals(sync.config.config.thresholds)
    missing = [signal for signal in given if signal not in sync.state.observations]
    if missing:
        yield f"no observation found for eviction signal {', '.join(missing)}"


def _reclaim_notes(sync: SyncResult) -> Iterator[str]:
    configuration = sync.config.config
    actions = configuration.layout.reclaim_actions(sync.triggered[0].signal, configuration.release)
    if actions:
        done = " and ".join(action.value for action in actions)
        yield f"the node would {done} first; here that is taken to free nothing"


def _signals(thresholds: Sequence[Threshold]) -> list[Signal]:
    return list(dict.fromkeys(threshold.signal for threshold in thresholds))
