"""A pod bears the zone and the region of its node."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakeapi.api_requests import PODS, Ask

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


def pod(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "nginx"}]
    metadata = {"name": "p", "labels": {"app": "web", ZONE: "elsewhere"}}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


@pytest.fixture(autouse=True)
def _node(ask: Ask) -> None:
    labels = {ZONE: "a", REGION: "r", "disk": "ssd"}
    ask("POST", "/api/v1/nodes", {"metadata": {"name": "n", "labels": labels}})


@pytest.mark.parametrize(
    ("node", "labels"),
    [
        ("n", {"app": "web", ZONE: "a", REGION: "r"}),
        ("gone", {"app": "web", ZONE: "elsewhere"}),
    ],
    ids=["of a node that is there", "of one that is not"],
)
def test_a_pod_created_on_a_node_gets_its_labels(
    ask: Ask, node: str, labels: dict[str, str]
) -> None:
    _, created = ask("POST", PODS, pod(nodeName=node))
    assert created["metadata"]["labels"] == labels


def test_a_pod_bound_to_a_node_gets_its_labels(ask: Ask) -> None:
    ask("POST", PODS, pod())
    binding = {
        "metadata": {"name": "p", "labels": {"by": "scheduler"}},
        "target": {"kind": "Node", "name": "n"},
    }
    assert ask("POST", f"{PODS}/p/binding", binding)[0] == 201
    _, bound = ask("GET", f"{PODS}/p")
    assert bound["metadata"]["labels"] == {"app": "web", "by": "scheduler", ZONE: "a", REGION: "r"}
