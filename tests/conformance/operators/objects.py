"""Objects of the operators' scenarios, and what the simulated kubelets do with their pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.builders import Document, manifest, workload_json
from tests.conformance.clusters.watched_cluster import WatchedCluster

SUCCEEDS: Final = {"end": "succeed"}
FAILS: Final = {"end": "fail"}
FAILS_ONCE: Final = {"end": "fail-once"}
"""Pods of a JobSet fail until it has been restarted."""

WORKERS: Final = 3
_FIRST: Final = {**FAILS_ONCE, "jobset.sigs.k8s.io/restart-attempt": "0"}
SIMULATION_SCRIPT: Final = {
    "register": [{"name": "node-{}", "count": WORKERS}],
    "pods": [
        {"match": {"labels": SUCCEEDS}, "start": "100ms", "stages": [{"after": 0, "exit": 0}]},
        {"match": {"labels": FAILS}, "start": "100ms", "stages": [{"after": 0, "exit": 1}]},
        {"match": {"labels": _FIRST}, "start": "100ms", "stages": [{"after": 0, "exit": 1}]},
        {"match": {"labels": FAILS_ONCE}, "start": "100ms", "stages": [{"after": 0, "exit": 0}]},
        {"match": {"labels": {"state": "stuck"}}, "start": "1h", "stop": "100ms"},
        {"match": {}, "start": "100ms", "stop": "100ms"},
    ],
}
"""Pods run at once, and succeed, fail or never start if their labels say so."""


def in_namespace(kind: str, name: str, namespace: str, **fields: Any) -> Document:
    """Build an object of a scenario's namespace."""
    return manifest(kind, name, namespace=namespace, **fields)


def workload(
    kind: str, name: str, namespace: str, replicas: int, image: str = "v1", **spec: Any
) -> Document:
    """Build a Deployment, ReplicaSet or StatefulSet whose pods run."""
    return workload_json(kind, name, replicas, namespace=namespace, pod=containers(image), **spec)


def job(name: str, namespace: str, labels: Mapping[str, str], **spec: Any) -> Document:
    """Build a Job whose pods have labels; ``spec`` adds to its spec."""
    return in_namespace("Job", name, namespace, spec=job_spec(labels, **spec))


def job_spec(labels: Mapping[str, str], **spec: Any) -> Document:
    """Return the spec of a Job whose pods are never restarted."""
    pod = {"restartPolicy": "Never", **containers("v1")}
    return {"template": {"metadata": {"labels": dict(labels)}, "spec": pod}, **spec}


def containers(image: str) -> Document:
    """Return the spec of a pod with one container."""
    return {"containers": [{"name": "main", "image": image}]}


def status(world: WatchedCluster, kind: str, name: str, namespace: str) -> Document:
    """Return an object's status; empty if it has none, or is not there."""
    found: Document = (world.get(kind, name, namespace) or {}).get("status") or {}
    return found


def has_condition(
    world: WatchedCluster, kind: str, name: str, namespace: str, **fields: str
) -> bool:
    """Return whether an object has a condition with all these fields."""
    conditions = status(world, kind, name, namespace).get("conditions") or []
    return any(fields.items() <= condition.items() for condition in conditions)


def pods(world: WatchedCluster, namespace: str, **labels: str) -> list[Document]:
    """Return the pods with labels, by name."""
    chosen = [
        pod
        for pod in world.all("Pod", namespace)
        if labels.items() <= pod["metadata"].get("labels", {}).items()
    ]
    return sorted(chosen, key=lambda pod: str(pod["metadata"]["name"]))
