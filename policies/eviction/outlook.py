"""Forecasts of pressure on a node: which threshold is met first, when, and which pods are evicted.

A :class:`ThresholdForecast` is one threshold and its distance; a :class:`NodeForecast` combines
those of a node with the round that its kubelet would run now. While no threshold requires action,
the one that would be acted on first leads: pods are ranked by its signal, as if it were met now.

    met in     what is available above the threshold, at the rate at which it falls
    acts in    that, plus the rest of the grace period

The time left is an extrapolation of the measured rate, not a guarantee.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from policies.eviction.configuration import Plan
from policies.eviction.deciding import Sample, Sync, settle, synchronize
from policies.eviction.filesystems import Reclaim
from policies.eviction.hysteresis import State
from policies.eviction.observations import Observation
from policies.eviction.ranking import Standing, rank
from policies.eviction.signals import MEMORY_SIGNALS, Signal
from policies.eviction.thresholds import Threshold
from policies.eviction.trends import Readings, Trend, extended, trend
from policies.quantity import NANOS

_SHARES: Final = 10**6


@dataclass(frozen=True, slots=True)
class Forecast:
    """A threshold with the observation and the trend of its signal.

    ``met_ns`` is for how long it has been met, None if it is not.
    """

    threshold: Threshold
    observation: Observation
    trend: Trend | None
    met_ns: int | None = None

    @property
    def asked(self) -> int:
        """The amount that has to be available, in whole units, rounded up."""
        return -(-self._asked_nanos // NANOS)

    @property
    def above(self) -> int:
        """The amount available above the threshold, in whole units; negative if it is short."""
        return self.observation.available - self.asked

    @property
    def share(self) -> int:
        """The margin as a share of the largest possible margin, in millionths; 0 if it is short."""
        whole = self.observation.capacity - self.asked
        return 0 if whole <= 0 else max(0, min(self.above, whole)) * _SHARES // whole

    @property
    def met_in_ns(self) -> int | None:
        """The time until the threshold is met; 0 if it is, None without a falling trend."""
        if self.met_ns is not None:
            return 0
        if self.trend is None:
            return None
        nanos = self.observation.available * NANOS - self._asked_nanos
        return self.trend.lasts_ns(nanos)

    @property
    def acts_in_ns(self) -> int | None:
        """The time until it is acted on: until it is met, plus the rest of its grace period."""
        met_in = self.met_in_ns
        if met_in is None:
            return None
        return met_in + max(0, self.threshold.grace_ns - (self.met_ns or 0))

    @property
    def shortage(self) -> int:
        """The amount missing to the threshold plus its minimum reclaim, in whole units."""
        least = self.threshold.min_reclaim
        more = 0 if least is None else least.nanos_of(self.observation.capacity)
        wanted = -(-(self._asked_nanos + more) // NANOS)
        return max(0, wanted - self.observation.available)

    @property
    def _asked_nanos(self) -> int:
        return self.threshold.value.nanos_of(self.observation.capacity)


@dataclass(frozen=True, slots=True)
class Past:
    """The state from earlier rounds: that of the kubelet's eviction manager, and measurements."""

    state: State = field(default_factory=State)
    readings: Readings = field(default_factory=dict)


UNSEEN: Final = Past()
"""The history of a node without an earlier round."""


@dataclass(frozen=True)
class Outlook:
    """A node: the round that its kubelet would run now, and its forecasts, the most urgent first.

    The trends come from ``measurements``.
    """

    node: str
    sync: Sync
    readings: Readings
    forecasts: tuple[Forecast, ...]

    @property
    def past(self) -> Past:
        """The history for the next round."""
        return Past(self.sync.state, self.readings)

    @property
    def leading(self) -> Forecast | None:
        """The threshold that is acted on, or would be first."""
        calling = self.sync.calling
        if calling:
            return next((each for each in self.forecasts if each.threshold == calling[0]), None)
        return self.forecasts[0] if self.forecasts else None

    @property
    def heads(self) -> bool:
        """Whether the node is under pressure, or is forecast to be."""
        leading = self.leading
        return leading is not None and leading.acts_in_ns is not None

    @cached_property
    def ranking(self) -> list[Standing]:
        """The pods in eviction order for the leading threshold."""
        leading = self.leading
        return [] if leading is None else self.ranked_for(leading.threshold.signal)

    @property
    def first(self) -> Standing | None:
        """The pod that is evicted first for the leading threshold, None if all are critical."""
        return next((each for each in self.ranking if not each.pod.critical), None)

    @property
    def reclaim(self) -> tuple[Reclaim, ...]:
        """The node-level reclaim actions for the leading threshold, before any pod is evicted."""
        leading, configuration = self.leading, self.sync.plan.configuration
        if leading is None:
            return ()
        return configuration.layout.reclaimed(leading.threshold.signal, configuration.release)

    def ranked_for(self, signal: Signal) -> list[Standing]:
        """Return the pods in eviction order when ``signal`` runs short."""
        sample = self.sync.sample
        stats = {} if sample.stats is None else sample.stats.pods
        return rank(sample.pods, stats, signal, self.sync.plan.configuration.layout)


def until_relieved(ranking: Iterable[Standing], shortage: int) -> list[Standing]:
    """Return the first pods of a ranking whose usage covers ``shortage``; at least one."""
    gone: list[Standing] = []
    for standing in ranking:
        if gone and shortage <= 0:
            break
        gone.append(standing)
        shortage -= standing.usage or 0
    return gone


def look_ahead(node: str, plan: Plan, past: Past, sample: Sample) -> Outlook:
    """Return a node's forecast from its current stats and its history.

    The time of ``sync_input`` is the kubelet's; node-level reclaim is assumed to free nothing.
    """
    sync = synchronize(plan, past.state, sample)
    if sync.reclaim:
        sync = settle(sync, sample.stats)
    if sample.stats is None:
        return Outlook(node, sync, past.readings, ())
    readings = extended(past.readings, sync.state.observations, sample.now_ns)
    forecasts = _forecasts(plan.later, sync.state, readings, sample.now_ns)
    return Outlook(node, sync, readings, tuple(sorted(forecasts, key=urgency)))


def most_pressing(outlooks: Iterable[Outlook]) -> list[Outlook]:
    """Sort nodes by how soon a threshold is acted on, then by the smallest margin, then by name."""
    return sorted(outlooks, key=_pressing)


def urgency(forecast: Forecast) -> tuple[bool, int, bool, bool, int]:
    """Return the sort key of a node's forecasts: the one that is acted on soonest comes first.

    Among forecasts with the same time, or without one, memory comes first if it is met, as in the
    kubelet, and then the smallest margin.
    """
    acts_in = forecast.acts_in_ns
    memory = forecast.threshold.signal in MEMORY_SIGNALS
    return (
        acts_in is None,
        acts_in or 0,
        not (memory and forecast.met_ns is not None),
        not forecast.threshold.hard,
        forecast.share,
    )


def _pressing(outlook: Outlook) -> tuple[bool, int, int, str]:
    leading = outlook.leading
    if leading is None:
        return (True, 0, _SHARES, outlook.node)
    acts_in = leading.acts_in_ns
    return (acts_in is None, acts_in or 0, leading.share, outlook.node)


def _forecasts(
    thresholds: Sequence[Threshold], state: State, readings: Readings, now_ns: int
) -> Iterator[Forecast]:
    for threshold in thresholds:
        observation = state.observations.get(threshold.signal)
        if observation is None:
            continue
        since = state.met_since.get(threshold)
        met_ns = None if since is None else now_ns - since
        yield Forecast(threshold, observation, trend(readings[threshold.signal]), met_ns)
