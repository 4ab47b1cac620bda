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

from policies.eviction.outlook import Forecast, Outlook, most_pressing, until_relieved
from policies.eviction.pods import EvictablePod
from policies.eviction.ranking import Standing

SURE_READINGS: Final = 5
"""The number of measurements from which on a trend is acted upon."""


@dataclass(frozen=True, slots=True)
class Bearing:
    """Facts about one node besides stats: UIDs of pods that a DaemonSet owns, and that terminate.

    ``cordoned`` is whether the node is cordoned; only measurements after ``relieved_ns`` count.
    """

    daemons: AbstractSet[str] = field(default_factory=frozenset)
    leaving: AbstractSet[str] = field(default_factory=frozenset)
    closed: bool = False
    relieved_ns: int = -1


@dataclass(frozen=True, slots=True)
class Terms:
    """How far ahead a forecast counts, in nanoseconds, and how many more nodes may be cordoned."""

    within_ns: int
    most_nodes: int


@dataclass(frozen=True, slots=True)
class Relief:
    """A node to relieve, the cause, and the pods to evict, in eviction order.

    ``needs_cordon`` is whether the node has yet to be cordoned; ``skipped`` is whether the node is
    left alone because the maximum number of nodes is cordoned.
    """

    node: str
    because: Forecast
    pods: tuple[Standing, ...]
    closes: bool
    refrained: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One action: cordon a node (``pod`` is None), or evict a pod from it."""

    relief: Relief
    pod: EvictablePod | None = None


def hits(outlook: Outlook, within_ns: int, since_ns: int = -1) -> Forecast | None:
    """Return the hard threshold that a node meets first within a time, None if it meets none.

    Only measurements after ``since_ns`` count.
    """
    bounds = (each for each in outlook.forecasts if each.threshold.hard)
    hard = [each for each in bounds if _is_sure(each, since_ns)]
    first = next((each for each in hard if each.met_in_ns is not None), None)
    if first is None or first.met_in_ns is None or first.met_in_ns > within_ns:
        return None
    return first


def relieve(
    outlooks: Iterable[Outlook], bearings: Mapping[str, Bearing], terms: Terms
) -> list[Relief]:
    """Decide which nodes are relieved, and of which pods; the most urgent node first.

    Nodes that are already cordoned, by any client, do not count against ``max_nodes``.
    """
    found: list[Relief] = []
    left = terms.most_nodes
    for outlook in most_pressing(outlooks):
        bearing = bearings.get(outlook.node, Bearing())
        because = hits(outlook, terms.within_ns, bearing.relieved_ns)
        if because is None:
            continue
        refrained = not bearing.closed and not left
        closes = not bearing.closed and not refrained
        left -= closes
        pods = () if refrained else tuple(_chosen(outlook, because, bearing))
        found.append(Relief(outlook.node, because, pods, closes, refrained))
    return found


def steps_of(reliefs: Sequence[Relief]) -> Iterator[Step]:
    """Return the actions in order: first cordon the nodes, then evict pods of the nodes in turn."""
    for relief in reliefs:
        if relief.closes:
            yield Step(relief)
    turns = zip_longest(*([Step(each, one.pod) for one in each.pods] for each in reliefs))
    for turn in turns:
        yield from (step for step in turn if step is not None)


def _is_sure(forecast: Forecast, since_ns: int) -> bool:
    """Return whether a threshold is met, or has enough measurements for a reliable trend."""
    if forecast.met_ns is not None:
        time_ns = forecast.observation.time_ns
        return time_ns is None or time_ns > since_ns
    trend = forecast.trend
    return trend is not None and trend.readings >= SURE_READINGS and trend.since_ns > since_ns


def _chosen(outlook: Outlook, because: Forecast, bearing: Bearing) -> Sequence[Standing]:
    ranking = outlook.ranked_for(because.threshold.signal)
    leaving = sum(each.usage or 0 for each in ranking if each.pod.uid in bearing.leaving)
    shortage = because.shortage - leaving
    if leaving and shortage <= 0:
        return ()
    stay = bearing.daemons | bearing.leaving
    return until_relieved(
        (each for each in ranking if each.usage and _may_go(each.pod, stay)), shortage
    )


def _may_go(pod: EvictablePod, stay: AbstractSet[str]) -> bool:
    return not pod.critical and pod.uid not in stay
