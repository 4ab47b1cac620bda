"""Objects for scenarios of controllers: the minimum that a server requires, and what is tested."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.builders import Document, manifest, owner, without_none, workload_json

NAMESPACE: Final = "shop"
NAMESPACE_DOCUMENT: Final = manifest("Namespace", NAMESPACE)
TEMPLATE_SPEC: Final = {"containers": [{"name": "c", "image": "registry.example/c:1"}]}
COST: Final = "controller.kubernetes.io/pod-deletion-cost"
YEAR_HOURS: Final = 8760


def ago(hours: float) -> str:
    """Return a time that lies so many hours back, as Kubernetes writes it."""
    return f"{datetime.now(UTC) - timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}"


def replica_set(name: str, replicas: int, **spec: Any) -> Document:
    """Build a labelled ReplicaSet in the scenarios' namespace; ``spec`` adds to its spec."""
    fields = {"namespace": NAMESPACE, "metadata": {"labels": {"app": name}}, "pod": TEMPLATE_SPEC}
    return workload_json("ReplicaSet", name, replicas, **{**fields, **spec})


def deployment(name: str, uid: str) -> Document:
    """Build a Deployment that no controller syncs."""
    return workload_json(
        "Deployment", name, 0, namespace=NAMESPACE, metadata={"uid": uid}, pod=TEMPLATE_SPEC
    )


def stored_pod(
    name: str,
    app: str,
    *,
    node: str | None = None,
    phase: str = "",
    ready_hours: float | None = None,
    hours: float = YEAR_HOURS,
    restarts: int = 0,
    cost: str | None = None,
    uid: str | None = None,
) -> Document:
    """Build a pod labelled ``app: APP`` as a server stores it.

    It was created so many ``hours`` ago, and has been ready for ``ready_hours``, if at all.
    """
    ready = ready_hours is not None
    metadata = {
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
    return manifest(
        "Pod",
        name,
        namespace=NAMESPACE,
        metadata=metadata | without_none(uid=uid),
        spec={**TEMPLATE_SPEC, **without_none(nodeName=node)},
        status=status,
    )


def condition(since: str) -> Mapping[str, str]:
    """Return the condition of a pod that has been ready since a time."""
    return {"type": "Ready", "status": "True", "lastTransitionTime": since}


def owned(document: Document, kind: str, name: str, uid: str) -> Document:
    """Return an object that is controlled by another one."""
    reference = owner(name, kind, "apps/v1", uid=uid, controller=True, blockOwnerDeletion=True)
    return with_metadata(document, ownerReferences=[reference])


def with_metadata(document: Document, **fields: Any) -> Document:
    """Return an object with other metadata."""
    return {**document, "metadata": {**document["metadata"], **fields}}
