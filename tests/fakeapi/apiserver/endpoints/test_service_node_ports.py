"""Node ports of Services are allocated, kept, refused and freed as by a kube-apiserver v1.37."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import Document, manifest
from tests.fakeapi.api_requests import SERVICES, Ask

_TAKEN = "provided port is already allocated"
_OUTSIDE = "provided port is not in the valid range. The range of valid ports is 30000-32767"
_LOCAL = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}


def service(name: str, *ports: Document, **spec: Any) -> Document:
    spec = {"type": "NodePort", "ports": list(ports), **spec}
    return manifest("Service", name, spec=spec)


def port(number: int, node_port: int = 0, protocol: str = "TCP") -> Document:
    document = {"name": f"{protocol.lower()}-{number}", "port": number, "protocol": protocol}
    return {**document, "nodePort": node_port} if node_port else document


def node_ports(answer: Document) -> list[int]:
    return [port.get("nodePort", 0) for port in answer["spec"]["ports"]]


@pytest.mark.parametrize(
    ("number", "problem"),
    [(30_080, _TAKEN), (29_999, _OUTSIDE), (32_768, _OUTSIDE)],
    ids=["taken", "below", "above"],
)
def test_a_node_port_that_is_not_available_is_refused(ask: Ask, number: int, problem: str) -> None:
    assert ask("POST", SERVICES, service("first", port(80, 30_080)))[0] == 201
    status, answer = ask("POST", SERVICES, service("second", port(80, number)))
    assert status == 422
    assert answer["message"] == (
        f'Service "second" is invalid: spec.ports[0].nodePort: Invalid value: {number}: {problem}'
    )


def test_a_node_port_is_free_after_its_service_is_deleted(ask: Ask) -> None:
    assert ask("POST", SERVICES, service("first", port(80, 30_080)))[0] == 201
    assert ask("DELETE", f"{SERVICES}/first")[0] == 200
    assert ask("POST", SERVICES, service("second", port(80, 30_080)))[0] == 201


def test_an_update_to_a_taken_node_port_is_refused(ask: Ask) -> None:
    assert ask("POST", SERVICES, service("first", port(80, 30_080)))[0] == 201
    assert ask("POST", SERVICES, service("second", port(80, 30_081)))[0] == 201
    change = {"spec": {"ports": [{"port": 80, "nodePort": 30_080}]}}
    status, answer = ask("PATCH", f"{SERVICES}/second", change)
    assert (status, _TAKEN in answer["message"]) == (422, True)


def test_unspecified_node_ports_are_allocated_exclusively(ask: Ask) -> None:
    given = [ask("POST", SERVICES, service(f"s{n}", port(80), port(81)))[1] for n in range(40)]
    numbers = [number for answer in given for number in node_ports(answer)]
    assert len(set(numbers)) == 80
    assert all(30_000 <= number <= 32_767 for number in numbers)


def test_protocols_of_one_port_share_a_node_port(ask: Ask) -> None:
    ports = (port(53), port(53, protocol="UDP"), port(54))
    first, second, third = node_ports(ask("POST", SERVICES, service("dns", *ports))[1])
    assert first == second != third
    named = service("named", port(53), port(53, 30_053, "UDP"))
    assert node_ports(ask("POST", SERVICES, named)[1]) == [30_053, 30_053]


def test_a_dry_run_allocates_no_node_port(ask: Ask) -> None:
    dry = ask("POST", SERVICES, service("dry", port(80), port(81)), dryRun="All")[1]
    assert node_ports(dry) == [32_768, 32_769]
    assert ask("POST", SERVICES, service("dry", port(80, 30_080)), dryRun="All")[0] == 201
    assert ask("POST", SERVICES, service("first", port(80, 30_080)))[0] == 201
    assert ask("POST", SERVICES, service("dry", port(80, 30_080)), dryRun="All")[0] == 422


def test_an_update_that_omits_node_ports_keeps_them(ask: Ask) -> None:
    made = ask("POST", SERVICES, service("s", port(80), port(81)))[1]
    body = service("s", port(81), port(82))
    kept = ask("PUT", f"{SERVICES}/s", body)[1]
    assert node_ports(kept)[0] == node_ports(made)[1]
    assert node_ports(kept)[1] not in node_ports(made)


@pytest.mark.parametrize("kind", ["ClusterIP", "ExternalName"])
def test_a_change_of_type_frees_the_node_ports(ask: Ask, kind: str) -> None:
    assert ask("POST", SERVICES, service("s", port(80, 30_080)))[0] == 201
    change = {"spec": {"type": kind, "externalName": "example.com"}}
    status, changed = ask("PATCH", f"{SERVICES}/s", change)
    assert (status, node_ports(changed)) == (200, [0])
    assert "externalTrafficPolicy" not in changed["spec"]
    assert ask("POST", SERVICES, service("next", port(80, 30_080)))[0] == 201


def test_a_change_to_cluster_ip_with_another_node_port_is_refused(ask: Ask) -> None:
    assert ask("POST", SERVICES, service("s", port(80, 30_080)))[0] == 201
    change = {"spec": {"type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30_081}]}}
    status, answer = ask("PATCH", f"{SERVICES}/s", change)
    assert (status, "may not be used when `type` is 'ClusterIP'" in answer["message"]) == (
        422,
        True,
    )


def test_a_local_load_balancer_has_a_port_for_health_checks(ask: Ask) -> None:
    made = ask("POST", SERVICES, service("s", port(80), **_LOCAL))[1]["spec"]
    assert 30_000 <= made["healthCheckNodePort"] <= 32_767
    taken = service("next", port(80, made["healthCheckNodePort"]))
    assert ask("POST", SERVICES, taken)[0] == 422
    kept = ask("PUT", f"{SERVICES}/s", service("s", port(80), **_LOCAL))[1]["spec"]
    assert kept["healthCheckNodePort"] == made["healthCheckNodePort"]
    change = {"spec": {"externalTrafficPolicy": "Cluster"}}
    assert "healthCheckNodePort" not in ask("PATCH", f"{SERVICES}/s", change)[1]["spec"]


def test_a_load_balancer_can_do_without_node_ports(ask: Ask) -> None:
    spec = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}
    made = ask("POST", SERVICES, service("s", port(80), **spec))[1]
    assert node_ports(made) == [0]
    changed = ask("PATCH", f"{SERVICES}/s", {"spec": {"type": "ClusterIP"}})[1]["spec"]
    assert "allocateLoadBalancerNodePorts" not in changed
