"""The result of a round in sentences: why no pod is evicted, and what the result depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from policies.eviction.deciding import Outcome, Sync
from policies.eviction.durations import spell_duration
from policies.eviction.signals import Signal
from policies.eviction.thresholds import Threshold

_SENTENCES: Final[Mapping[Outcome, str]] = {
    Outcome.UNWATCHED: "there are no thresholds, and limits of local storage are not kept to",
    Outcome.UNMEASURED: "there are no stats, so nothing is decided",
    Outcome.RELIEVED: "the node gets enough back without evicting a pod",
    Outcome.UNRANKED: "no pod is ranked, since the kubelet's first round had failed",
    Outcome.EMPTY: "eviction thresholds have been met, but no pods are active to evict",
    Outcome.ALL_CRITICAL: "unable to evict any pods from the node: all of them are critical",
}


def message(sync: Sync) -> str:
    """Return the kubelet's message for the evicted pod; or why no pod is evicted."""
    if sync.evictions:
        return sync.evictions[0].message
    return sync.refusal or "; ".join((*_why_nobody(sync), *_unobserved(sync)))


def notes(sync: Sync) -> list[str]:
    """Return notes on a round: grace periods, stale or missing observations, node-level reclaim."""
    found = [*_waiting(sync), *_stale(sync), *_unobserved(sync)]
    if sync.outcome in (Outcome.EVICTED, Outcome.EMPTY, Outcome.ALL_CRITICAL):
        found.extend(_reclaimed(sync))
    return found


def _why_nobody(sync: Sync) -> Iterator[str]:
    if sync.outcome is not Outcome.CALM:
        yield _SENTENCES[sync.outcome]
        return
    reasons = [*_waiting(sync), *_stale(sync)]
    yield from reasons or ["no threshold is met"]


def _waiting(sync: Sync) -> Iterator[str]:
    for threshold, since in sync.state.met_since.items():
        if threshold not in sync.state.acted_on:
            so_far = spell_duration(sync.sample.now_ns - since)
            grace = spell_duration(threshold.grace_ns)
            yield f"{threshold} is met for {so_far} of its grace period of {grace}"


def _stale(sync: Sync) -> Iterator[str]:
    fresh = {threshold.signal for threshold in sync.calling}
    for signal in _signals(sync.state.acted_on):
        if signal not in fresh:
            yield f"the stats of {signal} are stale, so nobody is evicted for it"


def _unobserved(sync: Sync) -> Iterator[str]:
    if sync.sample.stats is None or sync.outcome in (Outcome.REFUSED, Outcome.UNWATCHED):
        return
    given = _signals(sync.plan.configuration.thresholds)
    missing = [signal for signal in given if signal not in sync.state.observations]
    if missing:
        yield f"no observation found for eviction signal {', '.join(missing)}"


def _reclaimed(sync: Sync) -> Iterator[str]:
    configuration = sync.plan.configuration
    actions = configuration.layout.reclaimed(sync.calling[0].signal, configuration.release)
    if actions:
        done = " and ".join(action.value for action in actions)
        yield f"the node would {done} first; here that is taken to free nothing"


def _signals(thresholds: Sequence[Threshold]) -> list[Signal]:
    return list(dict.fromkeys(threshold.signal for threshold in thresholds))
