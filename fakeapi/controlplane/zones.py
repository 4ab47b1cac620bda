"""Rate limits for tainting unhealthy nodes by zone, so that a network failure evicts few pods.

    zone                          nodes tainted
    most nodes are ready          one each 10 s
    at least 55 % (and 3) not     one each 100 s in zones of more than 50 nodes, else none
    none is ready                 one each 10 s
    none is ready in any zone     none, and all taints are removed: the controller is cut off

Source: kubernetes/pkg/controller/nodelifecycle/node_lifecycle_controller.go (ComputeZoneState,
handleDisruption), scheduler/rate_limited_queue.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from fakeapi.controlplane.shapes import Node

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
