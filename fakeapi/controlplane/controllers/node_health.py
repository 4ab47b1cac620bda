"""Node health from the kubelet's heartbeats, and the rate at which unhealthy nodes are tainted.

A kubelet's heartbeats are renewals of its Lease (every 10 s) and writes of the node's status. The
observation time is when either was seen to change, by the controller's own clock, so that clocks
that differ do no harm:

    none for more than       conditions become Unknown, with the message
    60 s since the node's    "Kubelet never posted node status."
    creation, and never one
    50 s                     "Kubelet stopped posting node status."

The node's conditions are reflected in taints:

    condition                   taint, effect NoSchedule; for Ready also NoExecute
    Ready False                 node.kubernetes.io/not-ready
    Ready Unknown               node.kubernetes.io/unreachable
    MemoryPressure True ...     node.kubernetes.io/memory-pressure ...
    (spec.unschedulable)        node.kubernetes.io/unschedulable

Each zone limits the rate of NoExecute taints, so that a network failure evicts few pods:

    zone                          nodes tainted
    most nodes are ready          one each 10 s
    at least 55 % (and 3) not     one each 100 s in zones of more than 50 nodes, else none
    none is ready                 one each 10 s
    none is ready in any zone     none, and all taints are removed: the controller is cut off

Source: kubernetes/pkg/controller/nodelifecycle/node_lifecycle_controller.go (tryUpdateNodeHealth,
doNoScheduleTaintingPass, ComputeZoneState, handleDisruption), scheduler/rate_limited_queue.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from extender.kube.decoders.object_meta import NS_PER_SECOND, parse_time
from fakeapi.controlplane.controllers.types import Node, Taint

STARTUP_GRACE_SECONDS: Final = 60
MONITOR_GRACE_SECONDS: Final = 50

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"

_KUBELET_CONDITIONS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_TAINTS: Final[Mapping[str, Mapping[str, str]]] = {
    "Ready": {"False": NOT_READY, "Unknown": UNREACHABLE},
    "MemoryPressure": {"True": "node.kubernetes.io/memory-pressure"},
    "DiskPressure": {"True": "node.kubernetes.io/disk-pressure"},
    "NetworkUnavailable": {"True": "node.kubernetes.io/network-unavailable"},
    "PIDPressure": {"True": "node.kubernetes.io/pid-pressure"},
}
_MANAGED_TAINTS: Final = frozenset(
    (UNSCHEDULABLE, *(key for keys in _TAINTS.values() for key in keys.values()))
)


@dataclass(frozen=True, slots=True)
class NodeHealthData:
    """A node's last heartbeat, and when it was observed, in epoch nanoseconds of our clock.

    ``heartbeat`` is None for a node that never had the condition Ready.
    """

    observed_ns: int
    heartbeat: str | None
    renewed: str = ""


def observe_heartbeat(
    health: NodeHealthData | None, node: Node, renewed: str, now_ns: int
) -> NodeHealthData:
    """Return the health data of a node; ``renewed`` is its Lease's time, "" if it has none."""
    ready = node.condition("Ready")
    if ready is None:
        created = parse_time(node.metadata.creation_timestamp)
        health = health or NodeHealthData(created, None)
        if health.heartbeat is not None:
            health = NodeHealthData(now_ns, None, health.renewed)
    else:
        heartbeat = ready.last_heartbeat_time or ""
        if health is None or health.heartbeat != heartbeat:
            health = NodeHealthData(now_ns, heartbeat, health.renewed if health else "")
    if renewed != health.renewed and parse_time(renewed) > parse_time(health.renewed):
        health = replace(health, observed_ns=now_ns, renewed=renewed)
    return health


def has_missed_heartbeats(health: NodeHealthData, node: Node, now_ns: int) -> bool:
    """Return whether a node's grace period has passed without a heartbeat."""
    has_reported = node.condition("Ready") is not None
    grace = MONITOR_GRACE_SECONDS if has_reported else STARTUP_GRACE_SECONDS
    return now_ns > health.observed_ns + grace * NS_PER_SECOND


def unknown_conditions(node: Node, now: str) -> list[dict[str, Any]]:
    """Return the conditions to write for a node without heartbeats; none if already Unknown."""
    conditions = []
    for type_ in _KUBELET_CONDITIONS:
        old = node.condition(type_)
        if old is not None and old.status == "Unknown":
            continue
        since = old.last_heartbeat_time if old else node.metadata.creation_timestamp
        ever = old is not None
        conditions.append(
            {
                "type": type_,
                "status": "Unknown",
                "reason": "NodeStatusUnknown" if ever else "NodeStatusNeverUpdated",
                "message": (
                    "Kubelet stopped posting node status."
                    if ever
                    else "Kubelet never posted node status."
                ),
                "lastHeartbeatTime": since,
                "lastTransitionTime": now,
            }
        )
    return conditions


def no_schedule_taints(node: Node, now: str) -> list[Taint] | None:
    """Return the node's taints with those of its conditions; None if they are unchanged."""
    expected = {
        key: None
        for condition in node.status.conditions or ()
        if (key := _TAINTS.get(condition.type, {}).get(condition.status))
    }
    if node.spec.unschedulable:
        expected[UNSCHEDULABLE] = None
    present = list(node.spec.taints or ())
    ours = {t.key for t in present if t.effect == NO_SCHEDULE and t.key in _MANAGED_TAINTS}
    if ours == set(expected):
        return None
    kept = [
        taint
        for taint in present
        if not (taint.effect == NO_SCHEDULE and taint.key in ours - set(expected))
    ]
    added = [Taint(key, None, NO_SCHEDULE, now) for key in expected if key not in ours]
    return [*kept, *added]


def swap_taints(
    taints: Iterable[Taint] | None, add: str, remove: Iterable[str], now: str
) -> list[Taint] | None:
    """Return taints with NoExecute ``add`` ("": none), without ``remove``; None if unchanged."""
    present = list(taints or ())
    without = frozenset(remove)
    after = [t for t in present if not (t.effect == NO_EXECUTE and t.key in without)]
    if add and not has_taint(after, add):
        after.append(Taint(add, None, NO_EXECUTE, now))
    return None if after == present else after


def has_taint(taints: Iterable[Taint] | None, key: str) -> bool:
    """Return whether there is a NoExecute taint with a key."""
    return any(taint.key == key and taint.effect == NO_EXECUTE for taint in taints or ())


RATE: Final = 0.1
SECONDARY_RATE: Final = 0.01
LARGE_ZONE: Final = 50
UNHEALTHY_SHARE: Final = 0.55


class ZoneState(Enum):
    """The disruption state of a zone."""

    NORMAL = "Normal"
    PARTLY_DISRUPTED = "PartialDisruption"
    DISRUPTED = "FullDisruption"


def zone_of(node: Node) -> str:
    """Return a node's region and zone as one text; "" if it has neither label."""
    labels = node.metadata.labels or {}
    region = labels.get("topology.kubernetes.io/region", "")
    zone = labels.get("topology.kubernetes.io/zone", "")
    return f"{region}:\0:{zone}" if region or zone else ""


def zone_state(ready: int, unready: int) -> ZoneState:
    """Return the state of a zone with these numbers of ready and unready nodes."""
    if not ready and unready:
        return ZoneState.DISRUPTED
    if unready > 2 and unready / (ready + unready) >= UNHEALTHY_SHARE:
        return ZoneState.PARTLY_DISRUPTED
    return ZoneState.NORMAL


def eviction_rate(state: ZoneState, nodes: int) -> float:
    """Return how many nodes of a zone in this state are tainted per second."""
    if state is ZoneState.PARTLY_DISRUPTED:
        return SECONDARY_RATE if nodes > LARGE_ZONE else 0.0
    return RATE


class EvictionRateLimiter:
    """Rate limiter with a burst of one: at once, then at a rate per second (0: none)."""

    def __init__(self, now: float) -> None:
        self._rate = RATE
        self._tokens = 1.0
        self._last = now

    def set_rate(self, rate: float, now: float) -> None:
        """Change the rate; at a new rate above 0 the next node passes at once."""
        if rate != self._rate:
            self._rate, self._tokens, self._last = rate, 1.0 if rate else 0.0, now

    def try_accept(self, now: float) -> bool:
        """Take a token and return True, if one is available."""
        self._tokens = min(1.0, self._tokens + (now - self._last) * self._rate)
        self._last = now
        if self._tokens < 1.0 - 1e-9:
            return False
        self._tokens -= 1.0
        return True

    def seconds_until_next(self) -> float | None:
        """Return the seconds until the next token; None for never."""
        return max(0.0, (1.0 - self._tokens) / self._rate) if self._rate else None


class ZoneStates:
    """Tracks the states of zones and their rate limiters."""

    def __init__(self) -> None:
        self.rate_limiters: dict[str, EvictionRateLimiter] = {}
        self._states: dict[str, ZoneState] = {}

    @property
    def all_disrupted(self) -> bool:
        """Whether no zone has a ready node."""
        return bool(self._states) and all(
            state is ZoneState.DISRUPTED for state in self._states.values()
        )

    def rate_limiter(self, zone: str, now: float) -> EvictionRateLimiter:
        """Return the rate limiter of a zone, a new one if it has none."""
        if zone not in self.rate_limiters:
            self.rate_limiters[zone] = EvictionRateLimiter(now)
        return self.rate_limiters[zone]

    def update(self, counts: Mapping[str, tuple[int, int]], now: float) -> bool:
        """Set the numbers of ready and unready nodes of each zone.

        Return whether all zones are disrupted now and were not before.
        """
        before = self.all_disrupted
        self._states = {zone: zone_state(*both) for zone, both in counts.items()}
        for zone, both in counts.items():
            rate = 0.0 if self.all_disrupted else eviction_rate(self._states[zone], sum(both))
            self.rate_limiter(zone, now).set_rate(rate, now)
        return self.all_disrupted and not before
