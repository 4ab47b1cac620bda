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

Source: synchronize and reclaimNodeLevelResources in pkg/kubelet/eviction/eviction_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from policies.eviction.configuration import Configuration, Plan
from policies.eviction.filesystems import Reclaim
from policies.eviction.hysteresis import State, track
from policies.eviction.limits import broken_limit
from policies.eviction.messages import (
    DISRUPTION_TARGET,
    Eviction,
    Shortage,
    attempt,
    eviction_message,
)
from policies.eviction.observations import observe, unresolved
from policies.eviction.pods import EvictablePod
from policies.eviction.ranking import Standing, StatsOf, first_to_go, rank
from policies.eviction.signals import RESOURCES, Resource
from policies.eviction.stats import Summary
from policies.eviction.thresholds import Threshold, by_eviction_priority


class Outcome(Enum):
    """How a round ended, or why it paused."""

    UNWATCHED = "there are no thresholds, and limits of local storage are not kept to"
    REFUSED = "the configuration does not fit the node's filesystems"
    UNMEASURED = "there are no stats"
    OVER_LIMITS = "pods used more local storage than they may"
    CALM = "no threshold calls for action"
    RECLAIMING = "the node cleans up first"
    RELIEVED = "cleaning up was enough"
    UNRANKED = "nothing is ranked, since the first round had failed"
    EMPTY = "there are no pods to evict"
    ALL_CRITICAL = "all pods are critical"
    EVICTED = "a pod goes"


@dataclass(frozen=True, slots=True)
class Sample:
    """The input of a round: the time, the active pods of the node, and their stats.

    Active pods have neither succeeded nor failed; static pods are included. ``stats`` is None if no
    stats were available.
    """

    now_ns: int
    pods: Sequence[EvictablePod]
    stats: Summary | None


@dataclass(frozen=True, slots=True)
class Sync:
    """The result of a round: the state after it, the actions to take, and their cause.

    ``triggered`` are the thresholds that require action, the one that is acted on first.
    """

    outcome: Outcome
    state: State
    sample: Sample
    plan: Plan
    evictions: tuple[Eviction, ...] = ()
    reclaim: tuple[Reclaim, ...] = ()
    calling: tuple[Threshold, ...] = ()

    @property
    def event(self) -> str:
        """The message of the node's event; "" without one."""
        return attempt(self.resource) if self.resource is not None else ""

    @property
    def resource(self) -> Resource | None:
        """The resource that the node tries to reclaim."""
        limits = self.outcome is Outcome.OVER_LIMITS
        return RESOURCES[self.calling[0].signal] if self.calling and not limits else None

    @property
    def ranking(self) -> list[Standing]:
        """The pods in eviction order, if the round ranked them; computed on access."""
        if self.outcome not in (Outcome.EVICTED, Outcome.ALL_CRITICAL):
            return []
        layout = self.plan.configuration.layout
        return rank(self.sample.pods, _measured(self.sample), self.calling[0].signal, layout)

    @property
    def refusal(self) -> str:
        """Upstream's error, if the round failed."""
        return self.plan.refusal if self.outcome is Outcome.REFUSED else ""


def synchronize(plan: Plan, state: State, sample: Sample) -> Sync:
    """Run one round of a kubelet's eviction manager."""
    configuration = plan.configuration
    if not configuration.thresholds and not configuration.isolates_storage:
        return Sync(Outcome.UNWATCHED, state, sample, plan)
    thresholds = plan.later if state.begun else plan.first
    if plan.refusal and not state.begun:
        return Sync(Outcome.REFUSED, replace(state, begun=True), sample, plan)
    if sample.stats is None:
        return Sync(Outcome.UNMEASURED, replace(state, begun=True), sample, plan)
    tracked = track(
        state,
        thresholds,
        observe(sample.stats.node),
        sample.now_ns,
        configuration.transition_ns,
    )
    calling = tuple(by_eviction_priority(tracked.calling))
    sync = Sync(Outcome.CALM, tracked.state, sample, plan, calling=calling)
    over = tuple(_over_limits(sample, configuration)) if configuration.isolates_storage else ()
    if over:
        return replace(sync, outcome=Outcome.OVER_LIMITS, evictions=over)
    if not calling:
        return sync
    return _acted_on(sync)


def settle(sync: Sync, regained: Summary | None) -> Sync:
    """Finish a round that paused for node-level reclaim.

    ``stats_after_reclaim`` are the stats after the reclaim. It was sufficient if no configured
    threshold of any signal is below its value plus minimum reclaim, regardless of its grace period.
    Without new stats it was not. Otherwise a pod is evicted according to the stats from before the
    reclaim.
    """
    if regained is not None and not unresolved(sync.plan.later, observe(regained.node)):
        return replace(sync, outcome=Outcome.RELIEVED, reclaim=())
    return _evicting(replace(sync, reclaim=()))


def _measured(sample: Sample) -> StatsOf:
    return {} if sample.stats is None else sample.stats.pods


def _over_limits(sample: Sample, configuration: Configuration) -> Iterator[Eviction]:
    stats = _measured(sample)
    for pod in sample.pods:
        measured = stats.get(pod.uid)
        problem = "" if measured is None else broken_limit(pod, measured, configuration)
        if problem and not pod.critical:
            yield Eviction(pod, configuration.release.immediate_grace_seconds, problem)


def _acted_on(sync: Sync) -> Sync:
    configuration = sync.plan.configuration
    if sync.plan.refusal:
        return replace(sync, outcome=Outcome.UNRANKED)
    signal = sync.calling[0].signal
    reclaim = configuration.layout.reclaimed(signal, configuration.release)
    if reclaim:
        return replace(sync, outcome=Outcome.RECLAIMING, reclaim=reclaim)
    return _evicting(sync)


def _evicting(sync: Sync) -> Sync:
    sample, signal = sync.sample, sync.calling[0].signal
    if not sample.pods:
        return replace(sync, outcome=Outcome.EMPTY)
    layout = sync.plan.configuration.layout
    victim = first_to_go(sample.pods, _measured(sample), signal, layout)
    if victim is None:
        return replace(sync, outcome=Outcome.ALL_CRITICAL)
    return replace(sync, outcome=Outcome.EVICTED, evictions=(_eviction(sync, victim),))


def _eviction(sync: Sync, victim: EvictablePod) -> Eviction:
    configuration, leading = sync.plan.configuration, sync.calling[0]
    stats = _measured(sync.sample).get(victim.uid)
    shortage = Shortage(RESOURCES[leading.signal], sync.calling, sync.state.observations)
    message, annotations = eviction_message(victim, stats, shortage)
    return Eviction(
        victim,
        _grace_seconds(leading, victim, configuration),
        message,
        annotations,
        DISRUPTION_TARGET,
        victim.generation if configuration.release.observes_generation else None,
    )


def _grace_seconds(leading: Threshold, victim: EvictablePod, configuration: Configuration) -> int:
    release = configuration.release
    if leading.hard:
        return release.immediate_grace_seconds
    most = configuration.max_pod_grace_seconds
    if victim.grace_seconds is None or not release.heeds_pod_grace:
        return most
    return min(most, victim.grace_seconds)
