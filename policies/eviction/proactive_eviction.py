"""Proactive eviction: which nodes are relieved before the kubelet evicts, and of which pods.

A kubelet that runs short of a resource kills pods immediately and ignores disruption budgets. With
a forecast, a client can cordon the node and evict the first pods of the kubelet's own ranking
through the API, with their grace periods and within their budgets.

- A node is relieved if one of its hard thresholds is met, or is forecast to be met within the given
  time. A trend counts from five measurements on: with fewer, a pod that has just started resembles
  a leak.
- The pods that are evicted use together what the node is short of, minimum reclaim included; if the
  node is not short yet, one pod is evicted. The next round shows whether that was sufficient: the
  evicted pod may have been the cause. Usage of pods that already terminate counts as regained.
- Measurements from before the last evicted pod had terminated do not cause another relief.
- Critical, static and mirror pods stay, as with the kubelet. So do pods of DaemonSets, which would
  be recreated on the node, and pods with no usage or no measurement: their eviction would regain
  nothing.
- The most urgent nodes come first, and at most a given number of nodes is cordoned. Each node is
  cordoned before any of its pods is evicted. Then the first pod of each node is evicted, then the
  second of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Final

from policies.eviction.forecast import (
    NodeForecast,
    ThresholdForecast,
    pods_covering_shortage,
    sort_by_urgency,
)
from policies.eviction.pods import EvictablePod
from policies.eviction.ranking import PodUsage

MIN_TREND_MEASUREMENTS: Final = 5
"""The number of measurements from which on a trend is acted upon."""


@dataclass(frozen=True, slots=True)
class NodePodFacts:
    """Facts about one node besides stats: UIDs of pods that a DaemonSet owns, and that terminate.

    ``cordoned`` is whether the node is cordoned; only measurements after ``relieved_ns`` count.
    """

    daemonset_pods: AbstractSet[str] = field(default_factory=frozenset)
    terminating_pods: AbstractSet[str] = field(default_factory=frozenset)
    cordoned: bool = False
    relieved_ns: int = -1


@dataclass(frozen=True, slots=True)
class ReliefLimits:
    """How far ahead a forecast counts, in nanoseconds, and how many more nodes may be cordoned."""

    within_ns: int
    max_nodes: int


@dataclass(frozen=True, slots=True)
class Relief:
    """A node to relieve, the cause, and the pods to evict, in eviction order.

    ``needs_cordon`` is whether the node has yet to be cordoned; ``skipped`` is whether the node is
    left alone cause the maximum number of nodes is cordoned.
    """

    node: str
    cause: ThresholdForecast
    pods: tuple[PodUsage, ...]
    needs_cordon: bool
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class ReliefStep:
    """One action: cordon a node (``pod`` is None), or evict a pod from it."""

    relief: Relief
    pod: EvictablePod | None = None


def first_threshold_within(
    forecast: NodeForecast, within_ns: int, since_ns: int = -1
) -> ThresholdForecast | None:
    """Return the hard threshold that a node meets first within a time, None if it meets none.

    Only measurements after ``since_ns`` count.
    """
    for each in forecast.forecasts:
        met_in_ns = each.met_in_ns
        if each.threshold.hard and met_in_ns is not None and _is_reliable(each, since_ns):
            return each if met_in_ns <= within_ns else None
    return None


def plan_relief(
    forecasts: Iterable[NodeForecast], pod_facts: Mapping[str, NodePodFacts], limits: ReliefLimits
) -> list[Relief]:
    """Decide which nodes are relieved, and of which pods; the most urgent node first.

    Nodes that are already cordoned, by any client, do not count against ``max_nodes``.
    """
    found: list[Relief] = []
    left = limits.max_nodes
    for forecast in sort_by_urgency(forecasts):
        facts = pod_facts.get(forecast.node, NodePodFacts())
        cause = first_threshold_within(forecast, limits.within_ns, facts.relieved_ns)
        if cause is None:
            continue
        skipped = not facts.cordoned and not left
        needs_cordon = not facts.cordoned and not skipped
        left -= needs_cordon
        pods = () if skipped else tuple(_pods_to_evict(forecast, cause, facts))
        found.append(Relief(forecast.node, cause, pods, needs_cordon, skipped))
    return found


def relief_steps(reliefs: Sequence[Relief]) -> Iterator[ReliefStep]:
    """Return the actions in order: first cordon the nodes, then evict pods of the nodes in turn."""
    for relief in reliefs:
        if relief.needs_cordon:
            yield ReliefStep(relief)
    turns = zip_longest(*([ReliefStep(each, one.pod) for one in each.pods] for each in reliefs))
    for turn in turns:
        yield from (step for step in turn if step is not None)


def _is_reliable(forecast: ThresholdForecast, since_ns: int) -> bool:
    """Return whether a threshold is met, or has enough measurements for a reliable trend."""
    if forecast.met_ns is not None:
        time_ns = forecast.observation.time_ns
        return time_ns is None or time_ns > since_ns
    trend = forecast.trend
    return (
        trend is not None
        and trend.measurements >= MIN_TREND_MEASUREMENTS
        and trend.since_ns > since_ns
    )


def _pods_to_evict(
    forecast: NodeForecast, cause: ThresholdForecast, facts: NodePodFacts
) -> Sequence[PodUsage]:
    ranking = forecast.ranked_for(cause.threshold.signal)
    terminating = sum(each.usage or 0 for each in ranking if each.pod.uid in facts.terminating_pods)
    shortage = cause.shortage - terminating
    if terminating and shortage <= 0:
        return ()
    excluded = facts.daemonset_pods | facts.terminating_pods
    return pods_covering_shortage(
        (each for each in ranking if each.usage and _is_evictable(each.pod, excluded)), shortage
    )


def _is_evictable(pod: EvictablePod, excluded: AbstractSet[str]) -> bool:
    return not pod.critical and pod.uid not in excluded
