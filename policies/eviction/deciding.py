"""One round of a kubelet's eviction: state and measurements in, state and what to do out.

A round ends in one of the ways of :class:`Outcome`. At most one pod goes in it because its node
runs short; others go only for breaking limits of their own. If the node can clean up first, the
round stops half-way: whoever drives it carries ``Sync.reclaim`` out, measures again, and asks
:func:`settle` for the rest.

    sync = synchronize(plan, state, Sample(now_ns, pods, summary))
    if sync.reclaim:
        sync = settle(sync, fresh_summary)
    for eviction in sync.evictions: ...
    state = sync.state

After a round in which somebody went the next one follows as soon as those pods are gone, and after
CLEANUP_NS at the latest; otherwise after INTERVAL_NS (see policies.eviction.configuration).

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
    """How a round ended, or why it stopped half-way."""

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
    """What a round looks at: the time, the pods that are active on the node, and their stats.

    Active are pods that have neither succeeded nor failed, static ones included. ``stats`` is None
    if there were none to be had.
    """

    now_ns: int
    pods: Sequence[EvictablePod]
    stats: Summary | None


@dataclass(frozen=True, slots=True)
class Sync:
    """A round: the state after it, what is to be done, and what led to it.

    ``calling`` are the thresholds that called for action, the one that was acted on first.
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
        """The message of the node's event, if there is one."""
        return attempt(self.resource) if self.resource is not None else ""

    @property
    def resource(self) -> Resource | None:
        """What the node tries to get more of."""
        limits = self.outcome is Outcome.OVER_LIMITS
        return RESOURCES[self.calling[0].signal] if self.calling and not limits else None

    @property
    def ranking(self) -> list[Standing]:
        """The pods in the order in which they go, if it came to that; worked out when asked."""
        if self.outcome not in (Outcome.EVICTED, Outcome.ALL_CRITICAL):
            return []
        layout = self.plan.configuration.layout
        return rank(self.sample.pods, _measured(self.sample), self.calling[0].signal, layout)

    @property
    def refusal(self) -> str:
        """Upstream's error, if the round failed."""
        return self.plan.refusal if self.outcome is Outcome.REFUSED else ""


def synchronize(plan: Plan, state: State, sample: Sample) -> Sync:
    """Play one round of a kubelet."""
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
    """End a round that stopped for the node to clean up; ``regained`` are the stats after that.

    It was enough if no configured threshold of any signal is short of its value and minimum
    reclaim, however long it was met. Without new stats it was not. Else a pod goes by the stats of
    before.
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
