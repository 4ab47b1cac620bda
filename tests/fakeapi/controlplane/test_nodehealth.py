"""Whether a node is alive, what is written on it, and how fast it is given up."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.times import NS_PER_SECOND, moment
from fakeapi.controlplane.nodehealth import (
    Heard,
    is_silent,
    listen,
    no_schedule_taints,
    swapped,
    unknown_conditions,
)
from fakeapi.controlplane.shapes import Node, Taint, decode_node
from fakeapi.controlplane.zones import Turnstile, Zones, ZoneState, rate_of, state_of
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
    return moment(MADE) + int(seconds * NS_PER_SECOND)


def test_a_node_that_never_spoke_gets_a_minute_from_when_it_was_made() -> None:
    heard = listen(None, a_node(), "", at(55))
    assert not is_silent(heard, a_node(), at(60))
    assert is_silent(heard, a_node(), at(61))


def test_a_node_is_heard_when_its_heartbeat_changes_whatever_time_it_names() -> None:
    heard = listen(None, a_node(ready()), "", at(100))
    assert heard == Heard(at(100), MADE)
    heard = listen(heard, a_node(ready()), "", at(120))
    assert not is_silent(heard, a_node(ready()), at(150))
    assert is_silent(heard, a_node(ready()), at(151))
    later = a_node(ready(heartbeat="1999-01-01T00:00:00Z"))
    assert listen(heard, later, "", at(140)).at_ns == at(140)


def test_a_node_is_heard_when_its_lease_is_renewed() -> None:
    node = a_node(ready())
    heard = listen(None, node, "2026-01-01T00:00:00.000000Z", at(0))
    heard = listen(heard, node, "2026-01-01T00:00:10.000000Z", at(12))
    assert heard.at_ns == at(12)
    assert listen(heard, node, "2026-01-01T00:00:10.000000Z", at(20)).at_ns == at(12)
    assert listen(heard, node, "2026-01-01T00:00:05.000000Z", at(20)).at_ns == at(12)


def test_what_is_written_of_a_silent_node() -> None:
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
    assert keys(swapped(old, "z", ("x",), "now")) == ["y", "z"]
    assert swapped(old, "y", ("z",), "now") is None
    assert keys(swapped(old, "", ("x", "y"), "now")) == []


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
    assert state_of(well, ill) is state


def test_how_fast_nodes_are_given_up() -> None:
    assert rate_of(ZoneState.NORMAL, 5) == rate_of(ZoneState.DISRUPTED, 5) == 0.1
    assert rate_of(ZoneState.PARTLY_DISRUPTED, 50) == 0
    assert rate_of(ZoneState.PARTLY_DISRUPTED, 51) == 0.01


def test_a_turnstile_lets_one_through_and_then_one_at_a_time() -> None:
    turnstile = Turnstile(0)
    assert (turnstile.passes(0), turnstile.passes(9)) == (True, False)
    assert turnstile.next_in() == pytest.approx(1)
    assert turnstile.passes(10)
    turnstile.set_rate(0, 20)
    assert (turnstile.passes(1000), turnstile.next_in()) == (False, None)


def test_when_all_zones_fail_nobody_is_given_up_and_everybody_is_taken_back_once() -> None:
    zones = Zones()
    assert not zones.update({"a": (1, 2), "b": (0, 3)}, 0)
    assert zones.update({"a": (0, 3), "b": (0, 3)}, 5)
    assert not zones.update({"a": (0, 3), "b": (0, 3)}, 10)
    assert not any(turnstile.passes(1000) for turnstile in zones.turnstiles.values())
    zones.update({"a": (3, 0), "b": (0, 3)}, 1000)
    assert zones.turnstiles["b"].passes(1001)
