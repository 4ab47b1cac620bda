"""Addresses of services are allocated, kept, refused and freed as by a kube-apiserver v1.37.

``recorded/services.json`` holds calls that were made one after the other of a server that has
10.96.0.0/12 for services, each with the spec that it answered, or how it refused.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.defaulting.service_allocator import (
    CLUSTER_IP_RANGE,
    ClusterIPRange,
    RangeFullError,
)
from fakeapi.apiserver.endpoints import Api
from tests.builders import Document, manifest
from tests.fakeapi.api_requests import SERVICES, Ask

_RECORDED = Path(__file__).parents[2] / "recorded" / "services.json"


def service(name: str, **spec: Any) -> Document:
    return manifest("Service", name, spec={"ports": [{"port": 80}], **spec})


def test_a_history_of_addresses_equals_upstreams(ask: Ask) -> None:
    steps: list[Document] = orjson.loads(_RECORDED.read_bytes())
    assert steps
    for number, step in enumerate(steps):
        status, answer = ask(
            step["method"], step["path"], step.get("body"), step.get("content", "application/json"),
            **step.get("query", {}),
        )  # fmt: skip
        where = f"call {number}: {step['method']} {step['path']} {step.get('body')}"
        assert status == step["code"], f"{where}: {answer}"
        if "message" in step:
            assert answer["message"] == step["message"], where
            assert answer["details"].get("causes", []) == step["causes"], where
        else:
            assert answer["spec"] == step["spec"], where


def test_an_unspecified_address_is_allocated_exclusively(ask: Ask) -> None:
    given = ask("POST", SERVICES, service("first"))[1]["spec"]["clusterIP"]
    assert IPv4Address(given) in CLUSTER_IP_RANGE
    assert ask("POST", SERVICES, service("second", clusterIP=given))[0] == 422
    asked = [f"10.96.0.{number}" for number in range(10, 40)]
    for address in set(asked) - {given}:
        name = address.replace(".", "-")
        assert ask("POST", SERVICES, service(name, clusterIP=address))[0] == 201
    later = [ask("POST", SERVICES, service(f"later-{n}"))[1]["spec"]["clusterIP"] for n in range(9)]
    assert len({given, *asked, *later}) == 39


def test_an_upgrade_that_names_another_address_is_refused(ask: Ask) -> None:
    made = ask("POST", SERVICES, service("s"))[1]
    status, answer = ask("PATCH", f"{SERVICES}/s", {"spec": {"clusterIP": "10.96.0.99"}})
    assert status == 422
    assert answer["message"] == (
        'Service "s" is invalid: spec.clusterIPs[0]: Invalid value: ["10.96.0.99"]: '
        "may not change once set"
    )
    assert ask("GET", f"{SERVICES}/s")[1]["spec"] == made["spec"]


def test_the_first_address_is_for_the_api_server_itself(ask: Ask) -> None:
    assert ask("POST", SERVICES, service("mine", clusterIP="10.96.0.1"))[0] == 422
    assert ask("POST", SERVICES, service("kubernetes", clusterIP="10.96.0.1"))[0] == 201


@pytest.mark.parametrize("addresses", [{"clusterIP": "10.43.0.7"}, {"clusterIPs": ["10.43.0.7"]}])
def test_a_loaded_service_keeps_its_address(api: Api, ask: Ask, addresses: Document) -> None:
    api.load([service("old", **addresses)])
    labels = {"metadata": {"labels": {"a": "b"}}}
    status, changed = ask("PATCH", f"{SERVICES}/old", labels)
    assert (status, changed["spec"]["clusterIP"]) == (200, "10.43.0.7")
    assert changed["spec"]["clusterIPs"] == ["10.43.0.7"]
    other = {"spec": {"clusterIP": "10.96.0.7"}}
    assert ask("PATCH", f"{SERVICES}/old", other)[0] == 422


def test_a_service_loaded_without_an_address_gets_one_with_its_next_change(
    api: Api, ask: Ask
) -> None:
    api.load([service("old")])
    assert "clusterIP" not in ask("GET", f"{SERVICES}/old")[1]["spec"]
    labels = {"metadata": {"labels": {"a": "b"}}}
    changed = ask("PATCH", f"{SERVICES}/old", labels)[1]
    assert IPv4Address(changed["spec"]["clusterIP"]) in CLUSTER_IP_RANGE


@given(st.integers(0, 10**9), st.sets(st.integers(0, 31)))
def test_a_free_address_is_found_while_there_is_one(start: int, taken: set[int]) -> None:
    network = IPv4Network("10.0.0.0/27")
    pool = ClusterIPRange(frozenset(str(network[each]) for each in taken), start, network)
    left = {str(host) for host in network.hosts()} - pool.taken
    if left:
        assert pool.next_free() in left
    else:
        with pytest.raises(RangeFullError):
            pool.next_free()
