"""The world in which the webhooks of WorkloadSpreads are measured.

1,000 WorkloadSpreads with their targets, one that has its pods tried on nodes, one whose subset has
no limit, and 20,000 pods on 100 nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

SPREADS: Final = 1_000
NAMESPACES: Final = 100
PODS: Final = 20_000
NODES: Final = 100
PLAIN: Final = "plain"
"""The namespace about which no webhook is asked."""
APPROVED: Final = "approved"
"""The namespace about which a webhook is asked that does nothing."""

_ROOT: Final = Path(__file__).parents[2]

Document = dict[str, Any]


def objects() -> Iterator[Document]:
    """Return all of it."""
    definition = _ROOT / "deploy" / "crds" / "workloadspreads.apps.kruise.io.yaml"
    yield yaml.safe_load(definition.read_text())
    many = [f"many-{number}" for number in range(NAMESPACES)]
    for namespace in (*many, "adaptive", "free", "hot", "others", "set"):
        yield _namespace(namespace)
    yield _namespace(PLAIN, {"control-plane": "yes"})
    yield _namespace(APPROVED, {"control-plane": "yes", "approved": "yes"})
    for namespace in many:
        for number in range(SPREADS // NAMESPACES):
            yield _spread(namespace, number)
            yield _set(namespace, number)
    for namespace, strategy in (("hot", "Fixed"), ("adaptive", "Adaptive")):
        yield _spread(namespace, 0, {"type": strategy})
        yield _set(namespace, 0)
    yield _spread("set", 0)
    yield _set("set", 0)
    free = _spread("free", 0)
    yield {**free, "spec": {**free["spec"], "subsets": free["spec"]["subsets"][1:]}}
    yield _set("free", 0)
    for number in range(NODES):
        yield _node(f"node-{number}")
    for number in range(PODS):
        bare = pod("others", "none", number)
        yield {**bare, "spec": {**bare["spec"], "nodeName": f"node-{number % NODES}"}}


def _namespace(name: str, labels: Document | None = None) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": labels or {}},
    }


def _spread(namespace: str, number: int, strategy: Document | None = None) -> Document:
    expression = {"key": "zone", "operator": "In", "values": ["a"]}
    term = {"matchExpressions": [expression]}
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "WorkloadSpread",
        "metadata": {"name": f"spread-{number}", "namespace": namespace},
        "spec": {
            "targetRef": {**_TARGET, "name": f"spread-{number}"},
            "subsets": [
                {"name": "a", "maxReplicas": 1_000_000, "requiredNodeSelector": term},
                {"name": "b"},
            ],
            **({"scheduleStrategy": strategy} if strategy else {}),
        },
    }


def _set(namespace: str, number: int) -> Document:
    name = f"spread-{number}"
    template = {"metadata": {"labels": {"app": name}}, "spec": pod(namespace, name, 0)["spec"]}
    return {
        **_TARGET,
        "metadata": {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}-uid"},
        "spec": {
            "replicas": 100_000,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


_TARGET: Final = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}


def _node(name: str) -> Document:
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "500"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"zone": "a"}},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def pod(namespace: str, owner: str, number: int) -> Document:
    """Return a pod of the size that pods have."""
    environment = [{"name": f"SETTING_{n}", "value": f"a value that says {n}"} for n in range(20)]
    container = {"name": "c", "image": "registry.example/c:1", "env": environment}
    uid = f"{namespace}-{owner}-uid"
    reference = {**_TARGET, "name": owner, "uid": uid, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number}",
            "namespace": namespace,
            "labels": {"app": owner},
            "ownerReferences": [reference],
        },
        "spec": {"containers": [container]},
    }
