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

from fakeapi.controlplane.scheduler.backlog import EVERYTHING, Awaited, Event
from policies.decision import Code, Rejection

_NODES: Final = frozenset({Event.OWN_CHANGE, Event.NODE_ADDED, Event.NODE_CHANGED})
_ROOM: Final = _NODES | {Event.POD_GONE, Event.POD_CHANGED}
_COMPANY: Final = _ROOM | {Event.POD_PLACED, Event.NODE_GONE}

_HINTS: Final[Mapping[Code, Awaited]] = {
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
        _NODES,
    ),
    **dict.fromkeys((Code.HOST_PORTS, Code.TOO_MANY_PODS, Code.INSUFFICIENT), _ROOM),
    **dict.fromkeys(
        (
            Code.POD_AFFINITY,
            Code.POD_ANTI_AFFINITY,
            Code.EXISTING_ANTI_AFFINITY,
            Code.SPREAD,
            Code.SPREAD_LABEL,
        ),
        _COMPANY,
    ),
}


def awaited_by(rejections: Iterable[Rejection]) -> Awaited:
    """Return the events that may resolve any of these rejections; all for an unknown reason."""
    awaited: Awaited = frozenset({Event.OWN_CHANGE})
    for rejection in rejections:
        for reason in rejection.reasons:
            awaited |= _HINTS.get(reason.code, EVERYTHING)
        if len(awaited) == len(EVERYTHING):
            break
    return awaited
