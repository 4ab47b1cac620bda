"""Which nodes are relieved before their kubelets have to, of which pods, and in which order.

A kubelet that runs short kills: at once, whatever disruption budgets say. Who sees it coming can
close the node to new pods and ask for the first pods of the kubelet's own ranking to be evicted
through the API, with their grace periods and within their budgets.

- A node is relieved if a hard threshold of it is met, or would be within the given time. A trend
  counts from five readings on: with fewer, a pod that has just started looks like a leak.
- As many pods go as use what the node is short of, minimum reclaim included, and one if it is not
  short yet. Whether that was enough shows when it is looked at again: who has gone may have been
  the one who caused it all. What pods use that are on their way already counts as regained.
- Nor is a node relieved again by what was measured before the last pod that was sent away had gone.
- Critical, static and mirror pods stay, as with the kubelet, and so do those of DaemonSets, which
  would only come back, and those that use nothing, or of which nothing was measured: to evict them
  would regain nothing.
- The most pressing nodes come first, and no more than a given number are closed. Each node is
  closed before any of its pods goes. Then the first pod of each node goes, then the second of each.
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
"""From how many readings on a trend is acted upon."""


@dataclass(frozen=True, slots=True)
class Bearing:
    """What decides beside stats, of one node: UIDs of pods that a DaemonSet owns or that leave.

    ``closed`` tells whether it takes no new pods; only what was measured after ``relieved_ns``
    counts.
    """

    daemons: AbstractSet[str] = field(default_factory=frozenset)
    leaving: AbstractSet[str] = field(default_factory=frozenset)
    closed: bool = False
    relieved_ns: int = -1


@dataclass(frozen=True, slots=True)
class Terms:
    """How far ahead is looked, in nanoseconds, and how many nodes may be closed yet."""

    within_ns: int
    most_nodes: int


@dataclass(frozen=True, slots=True)
class Relief:
    """A node that is relieved, because of what, and of which pods, the first to go first.

    ``closes`` tells whether it still has to be closed; ``refrained`` that it is left alone, since
    as many nodes are closed as may be.
    """

    node: str
    because: Forecast
    pods: tuple[Standing, ...]
    closes: bool
    refrained: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do: close a node (``pod`` is None), or evict a pod from it."""

    relief: Relief
    pod: EvictablePod | None = None


def hits(outlook: Outlook, within_ns: int, since_ns: int = -1) -> Forecast | None:
    """Return the hard threshold that a node hits first within a time, None if it hits none.

    Only what was measured after ``since_ns`` counts.
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
    """Decide which nodes are relieved, and of which pods; the most pressing node first.

    Nodes that are closed already, whoever closed them, are not counted against ``most_nodes``.
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
    """Return what is to be done, in order: nodes are closed first, then pods go by turns."""
    for relief in reliefs:
        if relief.closes:
            yield Step(relief)
    turns = zip_longest(*([Step(each, one.pod) for one in each.pods] for each in reliefs))
    for turn in turns:
        yield from (step for step in turn if step is not None)


def _is_sure(forecast: Forecast, since_ns: int) -> bool:
    """Return whether a threshold is met, or enough was read to believe that it will be."""
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
