"""Objects for scenarios: the least that a server wants, and what the scenario is about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

NAMESPACE: Final = "shop"
TEMPLATE_SPEC: Final = {"containers": [{"name": "c", "image": "registry.example/c:1"}]}
COST: Final = "controller.kubernetes.io/pod-deletion-cost"
YEAR_HOURS: Final = 8760

Document = dict[str, Any]


def ago(hours: float) -> str:
    """Return a time that lies so many hours back, as Kubernetes writes it."""
    return f"{datetime.now(UTC) - timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}"


def replica_set(name: str, replicas: int, **spec: Any) -> Document:
    """Return a ReplicaSet of pods labelled ``app: NAME``; ``spec`` adds to its spec."""
    labels = {"app": name}
    given = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": TEMPLATE_SPEC},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {**given, **spec},
    }


def deployment(name: str, uid: str) -> Document:
    """Return a Deployment without a controller that syncs it."""
    spec = replica_set(name, 0)["spec"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": uid},
        "spec": {"selector": spec["selector"], "template": spec["template"]},
    }


def pod(
    name: str,
    app: str,
    *,
    node: str = "",
    phase: str = "",
    ready_hours: float | None = None,
    hours: float = YEAR_HOURS,
    restarts: int = 0,
    cost: str | None = None,
    uid: str = "",
) -> Document:
    """Return a pod labelled ``app: APP`` as a server would store it.

    It was made so many ``hours`` ago, and has been ready for ``ready_hours``, if at all.
    """
    ready = ready_hours is not None
    metadata = {
        "name": name,
        "namespace": NAMESPACE,
        "labels": {"app": app},
        "annotations": {} if cost is None else {COST: cost},
        "creationTimestamp": ago(hours),
    }
    container = {"name": "c", "image": "i", "imageID": "i", "ready": ready}
    status = {
        "phase": phase or ("Running" if ready else "Pending"),
        "conditions": [condition(ago(ready_hours))] if ready_hours is not None else [],
        "containerStatuses": [{**container, "restartCount": restarts}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, **({"uid": uid} if uid else {})},
        "spec": {**TEMPLATE_SPEC, **({"nodeName": node} if node else {})},
        "status": status,
    }


def condition(since: str) -> Mapping[str, str]:
    """Return the condition of a pod that has been ready since a time."""
    return {"type": "Ready", "status": "True", "lastTransitionTime": since}


def owned(thing: Document, kind: str, name: str, uid: str) -> Document:
    """Return a thing that is controlled by another one."""
    reference = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return with_metadata(thing, ownerReferences=[reference])


def with_metadata(thing: Document, **fields: Any) -> Document:
    """Return a thing with other metadata."""
    return {**thing, "metadata": {**thing["metadata"], **fields}}
