"""The cluster in which the webhooks of WorkloadSpreads are measured.

1,000 WorkloadSpreads with their targets, one that simulates scheduling, one whose subset has no
limit, and 20,000 pods on 100 nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

from tests.bench.clusters import average_container
from tests.builders import Document, manifest, node_json, without_none, workload_json

SPREADS: Final = 1_000
NAMESPACES: Final = 100
PODS: Final = 20_000
NODES: Final = 100
PLAIN: Final = "plain"
"""The namespace for which no webhook is called."""
APPROVED: Final = "approved"
"""The namespace for which a webhook is called that does nothing."""

_TARGET: Final = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}

_ROOT: Final = Path(__file__).parents[2]


def objects() -> Iterator[Document]:
    """Return all objects."""
    definition = _ROOT / "deploy" / "crds" / "workloadspreads.apps.kruise.io.yaml"
    yield yaml.safe_load(definition.read_text())
    many = [f"many-{number}" for number in range(NAMESPACES)]
    for namespace in (*many, "adaptive", "free", "hot", "others", "set"):
        yield manifest("Namespace", namespace)
    labels = {"control-plane": "yes"}
    yield manifest("Namespace", PLAIN, metadata={"labels": labels})
    yield manifest("Namespace", APPROVED, metadata={"labels": {**labels, "approved": "yes"}})
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
        yield node_json(
            f"node-{number}", cpu="64", memory="256Gi", pods="500", labels={"zone": "a"}
        )
    for number in range(PODS):
        bare = pod("others", "none", number)
        yield {**bare, "spec": {**bare["spec"], "nodeName": f"node-{number % NODES}"}}


def _spread(namespace: str, number: int, strategy: Document | None = None) -> Document:
    in_zone = {"key": "zone", "operator": "In", "values": ["a"]}
    limited = {"maxReplicas": 1_000_000, "requiredNodeSelector": {"matchExpressions": [in_zone]}}
    name, subsets = f"spread-{number}", [{"name": "a", **limited}, {"name": "b"}]
    target = {**_TARGET, "name": name}
    spec = without_none(targetRef=target, subsets=subsets, scheduleStrategy=strategy)
    return manifest("WorkloadSpread", name, namespace=namespace, spec=spec)


def _set(namespace: str, number: int) -> Document:
    name = f"spread-{number}"
    return workload_json(
        "ReplicaSet",
        name,
        100_000,
        namespace=namespace,
        pod=pod(namespace, name, 0)["spec"],
        metadata={"uid": f"{namespace}-{name}-uid"},
    )


def pod(namespace: str, owner: str, number: int) -> Document:
    """Return a pod of average size that a ReplicaSet controls."""
    reference = {**_TARGET, "name": owner, "uid": f"{namespace}-{owner}-uid", "controller": True}
    return manifest(
        "Pod",
        f"pod-{number}",
        namespace=namespace,
        metadata={"labels": {"app": owner}, "ownerReferences": [reference]},
        spec={"containers": [average_container()]},
    )
