"""Missed heartbeats of nodes, their conditions and taints, and the rate of evictions."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.object_meta import NS_PER_SECOND, parse_time
from fakeapi.controlplane.controllers.node_health import (
    EvictionRateLimiter,
    NodeHealthData,
    ZoneState,
    ZoneStates,
    eviction_rate,
    has_missed_heartbeats,
    no_schedule_taints,
    observe_heartbeat,
    swap_taints,
    unknown_conditions,
    zone_state,
)
from fakeapi.controlplane.controllers.types import Node, Taint, decode_node
from tests.builders import encoded, manifest

MADE = "2026-01-01T00:00:00Z"


def decoded_node(*conditions: dict[str, Any], **spec: Any) -> Node:
    metadata, status = {"creationTimestamp": MADE}, {"conditions": list(conditions)}
    document = manifest("Node", "n", metadata=metadata, spec=spec, status=status)
    return decode_node(encoded(document))  # type: ignore[arg-type]


def ready(status: str = "True", heartbeat: str = MADE) -> dict[str, Any]:
    return {"type": "Ready", "status": status, "lastHeartbeatTime": heartbeat}


def at(seconds: float) -> int:
    return parse_time(MADE) + int(seconds * NS_PER_SECOND)


def test_a_node_without_heartbeats_has_a_minute_from_its_creation() -> None:
    health = observe_heartbeat(None, decoded_node(), "", at(55))
    assert not has_missed_heartbeats(health, decoded_node(), at(60))
    assert has_missed_heartbeats(health, decoded_node(), at(61))


def test_a_changed_heartbeat_counts_whatever_its_time() -> None:
    health = observe_heartbeat(None, decoded_node(ready()), "", at(100))
    assert health == NodeHealthData(at(100), MADE)
    health = observe_heartbeat(health, decoded_node(ready()), "", at(120))
    assert not has_missed_heartbeats(health, decoded_node(ready()), at(150))
    assert has_missed_heartbeats(health, decoded_node(ready()), at(151))
    later = decoded_node(ready(heartbeat="1999-01-01T00:00:00Z"))
    assert observe_heartbeat(health, later, "", at(140)).observed_ns == at(140)


def test_a_renewed_lease_counts_as_a_heartbeat() -> None:
    node = decoded_node(ready())
    health = observe_heartbeat(None, node, "2026-01-01T00:00:00.000000Z", at(0))
    health = observe_heartbeat(health, node, "2026-01-01T00:00:10.000000Z", at(12))
    assert health.observed_ns == at(12)
    for second in (10, 5):
        renewed = f"2026-01-01T00:00:{second:02}.000000Z"
        assert observe_heartbeat(health, node, renewed, at(20)).observed_ns == at(12)


def test_conditions_of_an_unreachable_node() -> None:
    node = decoded_node(ready(), {"type": "DiskPressure", "status": "Unknown"})
    written = {c["type"]: (c["reason"], c["message"]) for c in unknown_conditions(node, "now")}
    never = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
    assert written == {
        "Ready": ("NodeStatusUnknown", "Kubelet stopped posting node status."),
        "MemoryPressure": never,
        "PIDPressure": never,
    }


def keys(taints: list[Taint] | None) -> list[str] | None:
    return None if taints is None else [t.key.rpartition("/")[2] for t in taints]


NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OTHER = {"key": "mine", "effect": "NoSchedule"}
TAINTS = [
    (decoded_node(ready("False")), ["not-ready"]),
    (decoded_node(ready("Unknown")), ["unreachable"]),
    (decoded_node(ready()), None),
    (decoded_node(ready(), unschedulable=True), ["unschedulable"]),
    (decoded_node(ready(), {"type": "MemoryPressure", "status": "True"}), ["memory-pressure"]),
    (decoded_node(ready(), taints=[NOT_READY]), []),
    (decoded_node(ready("False"), taints=[OTHER]), ["mine", "not-ready"]),
    (decoded_node(ready(), taints=[OTHER]), None),
    (decoded_node(ready(), taints=[{**NOT_READY, "effect": "NoExecute"}]), None),
]


@pytest.mark.parametrize(("node", "expected"), TAINTS)
def test_taints_follow_the_conditions(node: Node, expected: list[str] | None) -> None:
    assert keys(no_schedule_taints(node, "now")) == expected


def test_taints_that_evict_are_swapped() -> None:
    old = [Taint("x", None, "NoExecute"), Taint("y", None, "NoExecute")]
    assert keys(swap_taints(old, "z", ("x",), "now")) == ["y", "z"]
    assert swap_taints(old, "y", ("z",), "now") is None
    assert keys(swap_taints(old, "", ("x", "y"), "now")) == []


ZONES = [
    (0, 0, ZoneState.NORMAL),
    (1, 0, ZoneState.NORMAL),
    (0, 1, ZoneState.DISRUPTED),
    (1, 2, ZoneState.NORMAL),
    (1, 3, ZoneState.PARTLY_DISRUPTED),
    (9, 11, ZoneState.PARTLY_DISRUPTED),
    (10, 11, ZoneState.NORMAL),
]


@pytest.mark.parametrize(("ready", "not_ready", "state"), ZONES)
def test_the_state_of_a_zone(ready: int, not_ready: int, state: ZoneState) -> None:
    assert zone_state(ready, not_ready) is state


def test_the_eviction_rate() -> None:
    assert eviction_rate(ZoneState.NORMAL, 5) == eviction_rate(ZoneState.DISRUPTED, 5) == 0.1
    assert eviction_rate(ZoneState.PARTLY_DISRUPTED, 50) == 0
    assert eviction_rate(ZoneState.PARTLY_DISRUPTED, 51) == 0.01


def test_the_rate_limiter_accepts_one_and_then_one_in_an_interval() -> None:
    limiter = EvictionRateLimiter(0)
    assert (limiter.try_accept(0), limiter.try_accept(9)) == (True, False)
    assert limiter.seconds_until_next() == pytest.approx(1)
    assert limiter.try_accept(10)
    limiter.set_rate(0, 20)
    assert (limiter.try_accept(1000), limiter.seconds_until_next()) == (False, None)


def test_no_node_is_tainted_while_all_zones_fail() -> None:
    zones = ZoneStates()
    assert not zones.update({"a": (1, 2), "b": (0, 3)}, 0)
    assert zones.update({"a": (0, 3), "b": (0, 3)}, 5)
    assert not zones.update({"a": (0, 3), "b": (0, 3)}, 10)
    assert not any(limiter.try_accept(1000) for limiter in zones.rate_limiters.values())
    zones.update({"a": (3, 0), "b": (0, 3)}, 1000)
    assert zones.rate_limiters["b"].try_accept(1001)
