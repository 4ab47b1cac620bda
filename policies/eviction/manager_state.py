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

from policies.eviction.observations import (
    Observations,
    met_thresholds,
    unresolved_thresholds,
    updated_thresholds,
)
from policies.eviction.signals import PRESSURES, Pressure
from policies.eviction.thresholds import Threshold, merge_thresholds


@dataclass(frozen=True, slots=True)
class ManagerState:
    """The state of one kubelet's eviction manager; that of a new kubelet is empty.

    ``first_observed_at`` maps each threshold that is met to the time since when; ``thresholds_met``
    are those whose grace period is over; ``last_observed_at`` is when each pressure was last
    observed; ``pressures`` are the reported ones, sorted. Times are in nanoseconds. ``started`` is
    whether there was a round.
    """

    started: bool = False
    first_observed_at: Mapping[Threshold, int] = field(default_factory=dict)
    thresholds_met: tuple[Threshold, ...] = ()
    last_observed_at: Mapping[Pressure, int] = field(default_factory=dict)
    pressures: tuple[Pressure, ...] = ()
    observations: Observations = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """The state after a round, and the thresholds that require action in it."""

    state: ManagerState
    triggered: tuple[Threshold, ...]


def update_state(
    state: ManagerState,
    thresholds: Sequence[Threshold],
    observations: Observations,
    now_ns: int,
    transition_ns: int,
) -> StateUpdate:
    """Update the state with the observations of one round."""
    short = merge_thresholds(
        met_thresholds(thresholds, observations),
        unresolved_thresholds(state.thresholds_met, observations),
    )
    since = thresholds_first_observed_at(short, state.first_observed_at, now_ns)
    observed = pressures_last_observed_at(pressures_of(short), state.last_observed_at, now_ns)
    acted_on = thresholds_met_grace_period(since, now_ns)
    triggered = updated_thresholds(acted_on, observations, state.observations)
    after = ManagerState(
        started=True,
        first_observed_at=since,
        thresholds_met=tuple(acted_on),
        last_observed_at=observed,
        pressures=tuple(pressures_observed_since(observed, transition_ns, now_ns)),
        observations=observations,
    )
    return StateUpdate(after, tuple(triggered))


def thresholds_first_observed_at(
    thresholds: Iterable[Threshold], before: Mapping[Threshold, int], now_ns: int
) -> dict[Threshold, int]:
    """Return since when each threshold is met; a round in which it is not met restarts the time."""
    return {threshold: before.get(threshold, now_ns) for threshold in thresholds}


def thresholds_met_grace_period(since: Mapping[Threshold, int], now_ns: int) -> list[Threshold]:
    """Return the thresholds that have been met for at least their grace period."""
    return [threshold for threshold, at in since.items() if now_ns - at >= threshold.grace_ns]


def pressures_of(thresholds: Iterable[Threshold]) -> list[Pressure]:
    """Return the pressures that belong to thresholds, each once."""
    return list(dict.fromkeys(PRESSURES[threshold.signal] for threshold in thresholds))


def pressures_last_observed_at(
    pressures: Iterable[Pressure], before: Mapping[Pressure, int], now_ns: int
) -> dict[Pressure, int]:
    """Return when each pressure was last observed."""
    return {**before, **dict.fromkeys(pressures, now_ns)}


def pressures_observed_since(
    observed: Mapping[Pressure, int], transition_ns: int, now_ns: int
) -> list[Pressure]:
    """Return the pressures that were observed less than the transition period ago, sorted."""
    return sorted(pressure for pressure, at in observed.items() if now_ns - at < transition_ns)
