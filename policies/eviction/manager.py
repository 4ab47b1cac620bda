"""One round of the eviction manager: from state and measurements to the next state and actions.

A round ends with a :class:`SyncOutcome`. It evicts at most one pod because the node runs short of a
resource, and any number of pods that exceed limits of their own. If node-level reclaim is possible,
the round pauses: the caller carries out ``SyncResult.reclaim``, measures again, and calls
:func:`finish_after_reclaim`.

    sync = synchronize(config, state, SyncInput(now_ns, pods, summary))
    if sync.reclaim:
        sync = finish_after_reclaim(sync, fresh_summary)
    for eviction in sync.evictions: ...
    state = sync.state

After a round with an eviction the next round follows as soon as the evicted pods are gone, and
after CLEANUP_NS at the latest; otherwise after INTERVAL_NS (see policies.eviction.config).

Of the limits of local storage three are checked, and the first that is exceeded counts: the size
limit of an emptyDir, the limit of the pod (the sum of its containers' limits), the limit of one
container (its logs, and its writable layer unless that is on a dedicated filesystem). Every pod
that exceeds one is evicted in the same round; the round then evicts no pod for node pressure.

Source: synchronize, reclaimNodeLevelResources and localStorageEviction in
pkg/kubelet/eviction/eviction_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from policies.eviction.config import EvictionConfig, ResolvedConfig
from policies.eviction.filesystems import ReclaimAction
from policies.eviction.manager_state import ManagerState, update_state
from policies.eviction.messages import (
    DISRUPTION_TARGET,
    Eviction,
    ResourceShortage,
    eviction_message,
    reclaim_event_message,
)
from policies.eviction.observations import observe, unresolved_thresholds
from policies.eviction.pods import EvictablePod, Volume
from policies.eviction.ranking import PodUsage, StatsByUid, first_evictable_pod, rank
from policies.eviction.signals import RESOURCES, Quantity, Resource
from policies.eviction.stats import ContainerStats, DiskUsage, PodStats, Summary, VolumeStats
from policies.eviction.thresholds import Threshold, by_eviction_priority
from policies.kubernetes.duration import quoted
from policies.kubernetes.quantity import NANOS, format_binary


def exceeded_limit_message(
    pod: EvictablePod, stats: PodStats, configuration: EvictionConfig
) -> str:
    """Return upstream's message for the local storage limit that a pod exceeds; "" if none."""
    return (
        _volume_over_limit(pod, stats, configuration)
        or _pod_over_limit(pod, stats)
        or _container_over_limit(pod, stats, configuration)
    )


def _volume_over_limit(pod: EvictablePod, stats: PodStats, configuration: EvictionConfig) -> str:
    if not pod.volumes or not stats.volumes:
        return ""
    as_large_as_now = configuration.release.memory_backed_volumes
    for volume in pod.volumes:
        limit = volume.size_limit
        if volume.in_memory and as_large_as_now:
            limit = _capacity(volume, stats.volumes)
        if limit is not None and _over(_used_of(volume, stats.volumes), limit):
            return (
                f"Usage of EmptyDir volume {quoted(volume.name)} exceeds the limit "
                f"{quoted(limit.text)}. "
            )
    return ""


def _used_of(volume: Volume, measured: tuple[VolumeStats, ...]) -> int | None:
    """Return the usage of a volume; of several volumes with one name, upstream takes the last."""
    return next((each.usage.used for each in reversed(measured) if each.name == volume.name), None)


def _capacity(volume: Volume, measured: tuple[VolumeStats, ...]) -> Quantity | None:
    for each in measured:
        if each.name == volume.name and each.capacity is not None:
            return Quantity(each.capacity * NANOS, format_binary(each.capacity))
    return None


def _pod_over_limit(pod: EvictablePod, stats: PodStats) -> str:
    limit = pod.storage_limit
    if limit is None or (stats.storage_used or 0) * NANOS <= limit.nanos:
        return ""
    return f"Pod ephemeral local storage usage exceeds the total limit of containers {limit.text}. "


def _container_over_limit(pod: EvictablePod, stats: PodStats, configuration: EvictionConfig) -> str:
    limits = [(each.name, each.storage_limit) for each in pod.containers if each.storage_limit]
    if not limits:
        return ""
    for container in stats.containers:
        for name, limit in limits:
            if name == container.name and _over(_written(container, configuration), limit):
                return (
                    f"Container {name} exceeded its local ephemeral storage limit "
                    f"{quoted(limit.text)}. "
                )
    return ""


def _written(container: ContainerStats, configuration: EvictionConfig) -> int:
    layer = None if configuration.layout.dedicated_images else container.rootfs
    return _used(container.logs) + _used(layer)


def _used(usage: DiskUsage | None) -> int:
    return 0 if usage is None else usage.used or 0


def _over(used: int | None, limit: Quantity) -> bool:
    return used is not None and limit.nanos > 0 and used * NANOS > limit.nanos


class SyncOutcome(Enum):
    """How a round ended, or why it paused."""

    UNWATCHED = "there are no thresholds, and limits of local storage are not enforced"
    REFUSED = "the configuration does not fit the node's filesystems"
    UNMEASURED = "no stats are available"
    OVER_LIMITS = "pods exceeded their limits of local storage"
    CALM = "no threshold triggers an eviction"
    RECLAIMING = "the node reclaims resources first"
    RELIEVED = "node-level reclaim was sufficient"
    UNRANKED = "no pod is ranked, because the first round failed"
    EMPTY = "there are no pods to evict"
    ALL_CRITICAL = "all pods are critical"
    EVICTED = "a pod is evicted"


@dataclass(frozen=True, slots=True)
class SyncInput:
    """The input of a round: the time, the active pods of the node, and their stats.

    Active pods have neither succeeded nor failed; static pods are included. ``stats`` is None if no
    stats were available.
    """

    now_ns: int
    pods: Sequence[EvictablePod]
    stats: Summary | None


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The result of a round: the state after it, the actions to take, and their cause.

    ``triggered`` are the thresholds that require action, the one that is acted on first.
    """

    outcome: SyncOutcome
    state: ManagerState
    input: SyncInput
    config: ResolvedConfig
    evictions: tuple[Eviction, ...] = ()
    reclaim: tuple[ReclaimAction, ...] = ()
    triggered: tuple[Threshold, ...] = ()

    @property
    def event(self) -> str:
        """The message of the node's event; "" without one."""
        return reclaim_event_message(self.resource) if self.resource is not None else ""

    @property
    def resource(self) -> Resource | None:
        """The resource that the node tries to reclaim."""
        limits = self.outcome is SyncOutcome.OVER_LIMITS
        return RESOURCES[self.triggered[0].signal] if self.triggered and not limits else None

    @property
    def ranking(self) -> list[PodUsage]:
        """The pods in eviction order, if the round ranked them; computed on access."""
        if self.outcome not in (SyncOutcome.EVICTED, SyncOutcome.ALL_CRITICAL):
            return []
        layout = self.config.config.layout
        return rank(self.input.pods, _pod_stats(self.input), self.triggered[0].signal, layout)

    @property
    def error(self) -> str:
        """Upstream's error, if the round failed."""
        return self.config.error if self.outcome is SyncOutcome.REFUSED else ""


def synchronize(config: ResolvedConfig, state: ManagerState, sync_input: SyncInput) -> SyncResult:
    """Run one round of a kubelet's eviction manager."""
    configuration = config.config
    if not configuration.thresholds and not configuration.isolates_storage:
        return SyncResult(SyncOutcome.UNWATCHED, state, sync_input, config)
    thresholds = config.thresholds if state.started else config.first_round_thresholds
    if config.error and not state.started:
        return SyncResult(SyncOutcome.REFUSED, replace(state, started=True), sync_input, config)
    if sync_input.stats is None:
        return SyncResult(SyncOutcome.UNMEASURED, replace(state, started=True), sync_input, config)
    tracked = update_state(
        state,
        thresholds,
        observe(sync_input.stats.node),
        sync_input.now_ns,
        configuration.transition_ns,
    )
    triggered = tuple(by_eviction_priority(tracked.triggered))
    sync = SyncResult(SyncOutcome.CALM, tracked.state, sync_input, config, triggered=triggered)
    over = tuple(_over_limits(sync_input, configuration)) if configuration.isolates_storage else ()
    if over:
        return replace(sync, outcome=SyncOutcome.OVER_LIMITS, evictions=over)
    return _act_on_thresholds(sync) if triggered else sync


def finish_after_reclaim(sync: SyncResult, stats_after_reclaim: Summary | None) -> SyncResult:
    """Finish a round that paused for node-level reclaim.

    ``stats_after_reclaim`` are the stats after the reclaim. It was sufficient if no configured
    threshold of any signal is below its value plus minimum reclaim, regardless of its grace period.
    Without new stats it was not. Otherwise a pod is evicted according to the stats from before the
    reclaim.
    """
    if stats_after_reclaim is not None and not unresolved_thresholds(
        sync.config.thresholds, observe(stats_after_reclaim.node)
    ):
        return replace(sync, outcome=SyncOutcome.RELIEVED, reclaim=())
    return _evict_first(replace(sync, reclaim=()))


def _pod_stats(sample: SyncInput) -> StatsByUid:
    return {} if sample.stats is None else sample.stats.pods


def _over_limits(sample: SyncInput, configuration: EvictionConfig) -> Iterator[Eviction]:
    stats = _pod_stats(sample)
    for pod in sample.pods:
        measured = stats.get(pod.uid)
        problem = "" if measured is None else exceeded_limit_message(pod, measured, configuration)
        if problem and not pod.critical:
            yield Eviction(pod, configuration.release.immediate_grace_seconds, problem)


def _act_on_thresholds(sync: SyncResult) -> SyncResult:
    configuration = sync.config.config
    if sync.config.error:
        return replace(sync, outcome=SyncOutcome.UNRANKED)
    signal = sync.triggered[0].signal
    reclaim = configuration.layout.reclaim_actions(signal, configuration.release)
    if reclaim:
        return replace(sync, outcome=SyncOutcome.RECLAIMING, reclaim=reclaim)
    return _evict_first(sync)


def _evict_first(sync: SyncResult) -> SyncResult:
    sample, signal = sync.input, sync.triggered[0].signal
    if not sample.pods:
        return replace(sync, outcome=SyncOutcome.EMPTY)
    layout = sync.config.config.layout
    victim = first_evictable_pod(sample.pods, _pod_stats(sample), signal, layout)
    if victim is None:
        return replace(sync, outcome=SyncOutcome.ALL_CRITICAL)
    return replace(sync, outcome=SyncOutcome.EVICTED, evictions=(_eviction(sync, victim),))


def _eviction(sync: SyncResult, victim: EvictablePod) -> Eviction:
    configuration, leading = sync.config.config, sync.triggered[0]
    stats = _pod_stats(sync.input).get(victim.uid)
    shortage = ResourceShortage(RESOURCES[leading.signal], sync.triggered, sync.state.observations)
    message, annotations = eviction_message(victim, stats, shortage)
    return Eviction(
        victim,
        _grace_seconds(leading, victim, configuration),
        message,
        annotations,
        DISRUPTION_TARGET,
        victim.generation if configuration.release.observes_generation else None,
    )


def _grace_seconds(leading: Threshold, victim: EvictablePod, configuration: EvictionConfig) -> int:
    release = configuration.release
    if leading.hard:
        return release.immediate_grace_seconds
    longest = configuration.max_pod_grace_seconds
    if victim.grace_seconds is None or not release.respects_pod_grace_period:
        return longest
    return min(longest, victim.grace_seconds)
