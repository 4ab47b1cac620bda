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

from policies.eviction.config import ResolvedConfig
from policies.eviction.filesystems import ReclaimAction
from policies.eviction.manager import SyncInput, SyncResult, finish_after_reclaim, synchronize
from policies.eviction.manager_state import ManagerState
from policies.eviction.observations import Observation
from policies.eviction.ranking import PodUsage, rank
from policies.eviction.signals import MEMORY_SIGNALS, Signal
from policies.eviction.thresholds import Threshold
from policies.eviction.trends import Measurements, Trend, estimate_trend, extend_measurements
from policies.kubernetes.quantity import NANOS

_MILLION: Final = 10**6


@dataclass(frozen=True, slots=True)
class ThresholdForecast:
    """A threshold with the observation and the trend of its signal.

    ``met_ns`` is for how long it has been met, None if it is not.
    """

    threshold: Threshold
    observation: Observation
    trend: Trend | None
    met_ns: int | None = None

    @property
    def required(self) -> int:
        """The amount that has to be available, in whole units, rounded up."""
        return -(-self._required_nanos // NANOS)

    @property
    def margin(self) -> int:
        """The amount available above the threshold, in whole units; negative if it is short."""
        return self.observation.available - self.required

    @property
    def margin_millionths(self) -> int:
        """The margin as a share of the largest possible margin, in millionths; 0 if it is short."""
        whole = self.observation.capacity - self.required
        return 0 if whole <= 0 else max(0, min(self.margin, whole)) * _MILLION // whole

    @property
    def met_in_ns(self) -> int | None:
        """The time until the threshold is met; 0 if it is, None without a falling trend."""
        if self.met_ns is not None:
            return 0
        if self.trend is None:
            return None
        nanos = self.observation.available * NANOS - self._required_nanos
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
        reclaim = self.threshold.min_reclaim
        more = 0 if reclaim is None else reclaim.nanos_of(self.observation.capacity)
        amount = -(-(self._required_nanos + more) // NANOS)
        return max(0, amount - self.observation.available)

    @property
    def _required_nanos(self) -> int:
        return self.threshold.value.nanos_of(self.observation.capacity)


@dataclass(frozen=True, slots=True)
class ObservationHistory:
    """The state from earlier rounds: that of the kubelet's eviction manager, and measurements."""

    state: ManagerState = field(default_factory=ManagerState)
    measurements: Measurements = field(default_factory=dict)


NO_HISTORY: Final = ObservationHistory()
"""The history of a node without an earlier round."""


@dataclass(frozen=True)
class NodeForecast:
    """A node: the round that its kubelet would run now, and its forecasts, the most urgent first.

    The trends come from ``measurements``.
    """

    node: str
    sync: SyncResult
    measurements: Measurements
    forecasts: tuple[ThresholdForecast, ...]

    @property
    def history(self) -> ObservationHistory:
        """The history for the next round."""
        return ObservationHistory(self.sync.state, self.measurements)

    @property
    def leading(self) -> ThresholdForecast | None:
        """The threshold that is acted on, or would be first."""
        triggered = self.sync.triggered
        if triggered:
            return next((each for each in self.forecasts if each.threshold == triggered[0]), None)
        return self.forecasts[0] if self.forecasts else None

    @property
    def is_at_risk(self) -> bool:
        """Whether the node is under pressure, or is forecast to be."""
        leading = self.leading
        return leading is not None and leading.acts_in_ns is not None

    @cached_property
    def ranking(self) -> list[PodUsage]:
        """The pods in eviction order for the leading threshold."""
        leading = self.leading
        return [] if leading is None else self.ranked_for(leading.threshold.signal)

    @property
    def first_victim(self) -> PodUsage | None:
        """The pod that is evicted first for the leading threshold, None if all are critical."""
        return next((each for each in self.ranking if not each.pod.critical), None)

    @property
    def reclaim(self) -> tuple[ReclaimAction, ...]:
        """The node-level reclaim actions for the leading threshold, before any pod is evicted."""
        leading, configuration = self.leading, self.sync.config.config
        if leading is None:
            return ()
        return configuration.layout.reclaim_actions(leading.threshold.signal, configuration.release)

    def ranked_for(self, signal: Signal) -> list[PodUsage]:
        """Return the pods in eviction order when ``signal`` runs short."""
        sample = self.sync.input
        stats = {} if sample.stats is None else sample.stats.pods
        return rank(sample.pods, stats, signal, self.sync.config.config.layout)


def pods_covering_shortage(ranking: Iterable[PodUsage], shortage: int) -> list[PodUsage]:
    """Return the first pods of a ranking whose usage covers ``shortage``; at least one."""
    evicted: list[PodUsage] = []
    for pod in ranking:
        if evicted and shortage <= 0:
            break
        evicted.append(pod)
        shortage -= pod.usage or 0
    return evicted


def forecast_node(
    node: str, config: ResolvedConfig, history: ObservationHistory, sync_input: SyncInput
) -> NodeForecast:
    """Return a node's forecast from its current stats and its history.

    The time of ``sync_input`` is the kubelet's; node-level reclaim is assumed to free nothing.
    """
    sync = synchronize(config, history.state, sync_input)
    if sync.reclaim:
        sync = finish_after_reclaim(sync, sync_input.stats)
    if sync_input.stats is None:
        return NodeForecast(node, sync, history.measurements, ())
    measurements = extend_measurements(
        history.measurements, sync.state.observations, sync_input.now_ns
    )
    forecasts = _forecasts(config.thresholds, sync.state, measurements, sync_input.now_ns)
    return NodeForecast(node, sync, measurements, tuple(sorted(forecasts, key=urgency_key)))


def sort_by_urgency(forecasts: Iterable[NodeForecast]) -> list[NodeForecast]:
    """Sort nodes by how soon a threshold is acted on, then by the smallest margin, then by name."""
    return sorted(forecasts, key=_node_urgency_key)


def urgency_key(forecast: ThresholdForecast) -> tuple[bool, int, bool, bool, int]:
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
        forecast.margin_millionths,
    )


def _node_urgency_key(forecast: NodeForecast) -> tuple[bool, int, int, str]:
    leading = forecast.leading
    if leading is None:
        return (True, 0, _MILLION, forecast.node)
    acts_in = leading.acts_in_ns
    return (acts_in is None, acts_in or 0, leading.margin_millionths, forecast.node)


def _forecasts(
    thresholds: Sequence[Threshold], state: ManagerState, measurements: Measurements, now_ns: int
) -> Iterator[ThresholdForecast]:
    for threshold in thresholds:
        observation = state.observations.get(threshold.signal)
        if observation is None:
            continue
        since = state.first_observed_at.get(threshold)
        met_ns = None if since is None else now_ns - since
        trend = estimate_trend(measurements[threshold.signal])
        yield ThresholdForecast(threshold, observation, trend, met_ns)
