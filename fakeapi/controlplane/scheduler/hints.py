"""Queueing hints: which events may help a pod, by the reasons of the nodes that rejected it.

    reason                                            events that may help
    unschedulable, taints, affinity, name             a node is added or changed
    resources, number of pods, ports                  the same, or a pod is deleted or scaled down
    affinity to pods, spread                          the same, or any event of pods and nodes
    volumes, device claims                            all of these, or storage
    an extender                                       any

An update of the pod itself always may. Upstream's hints are more precise (whether the changed node
fits now); here a pod is sometimes retried without need.

Source: EventsToRegister in pkg/scheduler/framework/plugins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fakeapi.controlplane.scheduler.backlog import ALL_EVENTS, AwaitedEvents, ClusterEvent
from policies.decision import Code, Rejection

_NODE_EVENTS: Final = frozenset(
    {ClusterEvent.OWN_CHANGE, ClusterEvent.NODE_ADDED, ClusterEvent.NODE_CHANGED}
)
_RESOURCE_EVENTS: Final = _NODE_EVENTS | {ClusterEvent.POD_GONE, ClusterEvent.POD_CHANGED}
_TOPOLOGY_EVENTS: Final = _RESOURCE_EVENTS | {ClusterEvent.POD_PLACED, ClusterEvent.NODE_GONE}

_HINTS: Final[Mapping[Code, AwaitedEvents]] = {
    **dict.fromkeys(
        (
            Code.UNSCHEDULABLE,
            Code.OTHER_NODE,
            Code.UNTOLERATED_TAINT,
            Code.UNTOLERATED_TAINTS,
            Code.NODE_AFFINITY,
            Code.ENFORCED_AFFINITY,
            Code.AFFINITY_CONFLICT,
            Code.NOT_EXAMINED,
        ),
        _NODE_EVENTS,
    ),
    **dict.fromkeys((Code.HOST_PORTS, Code.TOO_MANY_PODS, Code.INSUFFICIENT), _RESOURCE_EVENTS),
    **dict.fromkeys(
        (
            Code.POD_AFFINITY,
            Code.POD_ANTI_AFFINITY,
            Code.EXISTING_ANTI_AFFINITY,
            Code.SPREAD,
            Code.SPREAD_LABEL,
        ),
        _TOPOLOGY_EVENTS,
    ),
}


def events_that_may_help(rejections: Iterable[Rejection]) -> AwaitedEvents:
    """Return the events that may resolve any of these rejections; all for an unknown reason."""
    awaited: AwaitedEvents = frozenset({ClusterEvent.OWN_CHANGE})
    for rejection in rejections:
        for reason in rejection.reasons:
            awaited |= _HINTS.get(reason.code, ALL_EVENTS)
        if len(awaited) == len(ALL_EVENTS):
            break
    return awaited
