"""The state that an eviction manager keeps between rounds, so that conditions do not oscillate.

Three delays prevent oscillation:

- a *grace period*: a soft threshold is acted on once it has been met in every round for that long;
- a *minimum reclaim*: a threshold that was acted on stays met until more than its value is
  available;
- a *transition period*: a pressure is reported until it has not been observed for that long.

In addition, an observation is acted on once: a signal that was not measured since the last round
keeps its pressure, but triggers no eviction.

    met -> (minimum reclaim) -> since when -> pressures -> grace period over -> measured anew

Source: synchronize in pkg/kubelet/eviction/eviction_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from policies.eviction.observations import Observations, met, unresolved, updated
from policies.eviction.signals import PRESSURES, Pressure
from policies.eviction.thresholds import Threshold, merged


@dataclass(frozen=True, slots=True)
class State:
    """The state of one kubelet's eviction manager; that of a new kubelet is empty.

    ``first_observed_at`` maps each threshold that is met to the time since when; ``thresholds_met``
    are those whose grace period is over; ``last_observed_at`` is when each pressure was last
    observed; ``pressures`` are the reported ones, sorted. Times are in nanoseconds. ``started`` is
    whether there was a round.
    """

    begun: bool = False
    met_since: Mapping[Threshold, int] = field(default_factory=dict)
    acted_on: tuple[Threshold, ...] = ()
    seen_at: Mapping[Pressure, int] = field(default_factory=dict)
    pressures: tuple[Pressure, ...] = ()
    observations: Observations = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tracked:
    """The state after a round, and the thresholds that require action in it."""

    state: State
    calling: tuple[Threshold, ...]


def track(
    state: State,
    thresholds: Sequence[Threshold],
    observations: Observations,
    now_ns: int,
    transition_ns: int,
) -> Tracked:
    """Update the state with the observations of one round."""
    short = merged(met(thresholds, observations), unresolved(state.acted_on, observations))
    since = met_since(short, state.met_since, now_ns)
    seen = seen_at(pressures_of(short), state.seen_at, now_ns)
    acted_on = over_grace(since, now_ns)
    calling = updated(acted_on, observations, state.observations)
    after = State(
        begun=True,
        met_since=since,
        acted_on=tuple(acted_on),
        seen_at=seen,
        pressures=tuple(reported(seen, transition_ns, now_ns)),
        observations=observations,
    )
    return Tracked(after, tuple(calling))


def met_since(
    thresholds: Iterable[Threshold], before: Mapping[Threshold, int], now_ns: int
) -> dict[Threshold, int]:
    """Return since when each threshold is met; a round in which it is not met restarts the time."""
    return {threshold: before.get(threshold, now_ns) for threshold in thresholds}


def over_grace(since: Mapping[Threshold, int], now_ns: int) -> list[Threshold]:
    """Return the thresholds that have been met for at least their grace period."""
    return [threshold for threshold, at in since.items() if now_ns - at >= threshold.grace_ns]


def pressures_of(thresholds: Iterable[Threshold]) -> list[Pressure]:
    """Return the pressures that belong to thresholds, each once."""
    return list(dict.fromkeys(PRESSURES[threshold.signal] for threshold in thresholds))


def seen_at(
    pressures: Iterable[Pressure], before: Mapping[Pressure, int], now_ns: int
) -> dict[Pressure, int]:
    """Return when each pressure was last observed."""
    return {**before, **dict.fromkeys(pressures, now_ns)}


def reported(seen: Mapping[Pressure, int], transition_ns: int, now_ns: int) -> list[Pressure]:
    """Return the pressures that were observed less than the transition period ago, sorted."""
    return sorted(pressure for pressure, at in seen.items() if now_ns - at < transition_ns)
