"""Whether a node is alive, what is written on it, and how fast it is given up."""

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
from tests.builders import encoded

MADE = "2026-01-01T00:00:00Z"


def a_node(*conditions: dict[str, Any], **spec: Any) -> Node:
    metadata = {"name": "n", "creationTimestamp": MADE}
    status = {"conditions": list(conditions)}
    return decode_node(
        encoded({"metadata": metadata, "spec": spec, "status": status})  # type: ignore[arg-type]
    )


def ready(status: str = "True", heartbeat: str = MADE) -> dict[str, Any]:
    return {"type": "Ready", "status": status, "lastHeartbeatTime": heartbeat}


def at(seconds: float) -> int:
    return parse_time(MADE) + int(seconds * NS_PER_SECOND)


def test_a_node_that_never_spoke_gets_a_minute_from_when_it_was_made() -> None:
    heard = observe_heartbeat(None, a_node(), "", at(55))
    assert not has_missed_heartbeats(heard, a_node(), at(60))
    assert has_missed_heartbeats(heard, a_node(), at(61))


def test_a_changed_heartbeat_counts_whatever_its_time() -> None:
    heard = observe_heartbeat(None, a_node(ready()), "", at(100))
    assert heard == NodeHealthData(at(100), MADE)
    heard = observe_heartbeat(heard, a_node(ready()), "", at(120))
    assert not has_missed_heartbeats(heard, a_node(ready()), at(150))
    assert has_missed_heartbeats(heard, a_node(ready()), at(151))
    later = a_node(ready(heartbeat="1999-01-01T00:00:00Z"))
    assert observe_heartbeat(heard, later, "", at(140)).observed_ns == at(140)


def test_a_renewed_lease_counts_as_a_heartbeat() -> None:
    node = a_node(ready())
    heard = observe_heartbeat(None, node, "2026-01-01T00:00:00.000000Z", at(0))
    heard = observe_heartbeat(heard, node, "2026-01-01T00:00:10.000000Z", at(12))
    assert heard.observed_ns == at(12)
    assert observe_heartbeat(heard, node, "2026-01-01T00:00:10.000000Z", at(20)).observed_ns == at(
        12
    )
    assert observe_heartbeat(heard, node, "2026-01-01T00:00:05.000000Z", at(20)).observed_ns == at(
        12
    )


def test_writes_about_an_unreachable_node() -> None:
    node = a_node(ready(), {"type": "DiskPressure", "status": "Unknown"})
    written = {c["type"]: (c["reason"], c["message"]) for c in unknown_conditions(node, "now")}
    never = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
    assert written == {
        "Ready": ("NodeStatusUnknown", "Kubelet stopped posting node status."),
        "MemoryPressure": never,
        "PIDPressure": never,
    }


def keys(taints: list[Taint] | None) -> list[str] | None:
    return None if taints is None else [t.key.rpartition("/")[2] for t in taints]


TAINTS = [
    (a_node(ready("False")), ["not-ready"]),
    (a_node(ready("Unknown")), ["unreachable"]),
    (a_node(ready()), None),
    (a_node(ready(), unschedulable=True), ["unschedulable"]),
    (
        a_node(ready(), {"type": "MemoryPressure", "status": "True"}),
        ["memory-pressure"],
    ),
    (
        a_node(ready(), taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]),
        [],
    ),
    (
        a_node(ready("False"), taints=[{"key": "mine", "effect": "NoSchedule"}]),
        ["mine", "not-ready"],
    ),
    (a_node(ready(), taints=[{"key": "mine", "effect": "NoSchedule"}]), None),
    (
        a_node(ready(), taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]),
        None,
    ),
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


@pytest.mark.parametrize(("well", "ill", "state"), ZONES)
def test_how_a_zone_is(well: int, ill: int, state: ZoneState) -> None:
    assert zone_state(well, ill) is state


def test_the_eviction_rate() -> None:
    assert eviction_rate(ZoneState.NORMAL, 5) == eviction_rate(ZoneState.DISRUPTED, 5) == 0.1
    assert eviction_rate(ZoneState.PARTLY_DISRUPTED, 50) == 0
    assert eviction_rate(ZoneState.PARTLY_DISRUPTED, 51) == 0.01


def test_a_turnstile_lets_one_through_and_then_one_at_a_time() -> None:
    turnstile = EvictionRateLimiter(0)
    assert (turnstile.try_accept(0), turnstile.try_accept(9)) == (True, False)
    assert turnstile.seconds_until_next() == pytest.approx(1)
    assert turnstile.try_accept(10)
    turnstile.set_rate(0, 20)
    assert (turnstile.try_accept(1000), turnstile.seconds_until_next()) == (False, None)


def test_when_all_zones_fail_no_node_is_tainted_and_all_recover_once() -> None:
    zones = ZoneStates()
    assert not zones.update({"a": (1, 2), "b": (0, 3)}, 0)
    assert zones.update({"a": (0, 3), "b": (0, 3)}, 5)
    assert not zones.update({"a": (0, 3), "b": (0, 3)}, 10)
    assert not any(turnstile.try_accept(1000) for turnstile in zones.rate_limiters.values())
    zones.update({"a": (3, 0), "b": (0, 3)}, 1000)
    assert zones.rate_limiters["b"].try_accept(1001)
