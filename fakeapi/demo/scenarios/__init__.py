"""Shipped clusters by name, and requests of a real kube-scheduler about them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

from fakeapi.demo.scenarios.demo_cluster import demo_cluster

Document = dict[str, Any]

SCENARIOS: Mapping[str, Callable[[], list[Document]]] = {"demo": demo_cluster}


class UnknownScenarioError(ValueError):
    """A scenario is unknown; the message lists the shipped ones."""


def scenario(name: str) -> list[Document]:
    """Return the objects of a shipped cluster. Raises UnknownScenarioError."""
    if name not in SCENARIOS:
        raise UnknownScenarioError(f"unknown scenario {name!r}; expected {', '.join(SCENARIOS)}")
    return SCENARIOS[name]()


def captured_request(name: str) -> bytes:
    """Return the body of a request captured from kube-scheduler 1.30.12 (see ``captured/``).

    Its pods and nodes are part of the demo cluster.
    """
    file = resources.files("fakeapi.demo.scenarios") / "captured" / f"{name}.json"
    return json.dumps(json.loads(file.read_bytes())["request"]["body"]).encode()
