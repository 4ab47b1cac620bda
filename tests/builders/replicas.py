"""Builders of ReplicaSets and their pods, and known answers about the pods deleted first.

Values that decisions read, and the documents that are decoded into them::

    replica("a", ready=3600), replica_set_json("web"), member_json("web-1", ready=3600)

``replica("a", ready=3600)`` is a pod that has been ready for an hour at ``NOW``. All other fields
have the same defaults, so two replicas differ only in the arguments, and in their UIDs, which are
their names. ``created`` is an age, too; None is a missing time.

Objects for API servers and controllers::

    a_replica_set(replicas=2), a_pod("web-1", "web", node="node-1")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from extender.kube.decoders.replicasets import decode_member, decode_replica_set
from policies.replicaset import RankedPod, ReplicaSet, ReplicaSetPod
from tests.builders import (
    NO_LABELS,
    SECOND,
    Document,
    encoded,
    manifest,
    pod_json,
    rfc3339,
    without_none,
)
from tests.builders.recorded import read_recorded

NOW = 1_700_000_000
"""Seconds after the epoch."""
NOW_NS = NOW * SECOND

VECTORS: Mapping[str, Any] = msgspec.json.decode(
    (Path(__file__).parents[1] / "vectors" / "replicaset.json").read_bytes()
)
RECORDED = read_recorded("scaledowns.jsonl.gz")
"""Scale-downs of a real controller by name; tests/recorded/README.md describes them."""


def replica(
    name: str = "a",
    *,
    uid: str | None = None,
    node: str = "node-1",
    phase: str = "Running",
    ready: float | None = 3600,
    is_ready: bool = True,
    cost: int = 0,
    restarts: int = 0,
    sidecar_restarts: int = 0,
    created: float | None = 7200,
) -> RankedPod:
    """Build a replica that has been ready, and existed, for so many seconds at ``NOW``."""
    return RankedPod(
        namespace="default",
        name=name,
        uid=uid or name,
        node=node,
        phase=phase,
        ready=is_ready,
        ready_since_ns=_moment(ready),
        deletion_cost=cost,
        restarts=restarts,
        sidecar_restarts=sidecar_restarts,
        created_ns=_moment(created),
    )


def names(replicas: Iterable[RankedPod]) -> list[str]:
    """Return the names of replicas."""
    return [each.name for each in replicas]


def replica_set_json(
    name: str = "web",
    *,
    match: Mapping[str, str] | None = None,
    owner: str | None = None,
    namespace: str = "default",
    **metadata: Any,
) -> Document:
    """Build an apps/v1 ReplicaSet; ``owner`` is the UID of a Deployment that controls it."""
    owners = None if owner is None else [reference("Deployment", "d", owner)]
    meta = {"uid": f"rs-{name}", **metadata} | without_none(ownerReferences=owners)
    selector = {"matchLabels": dict(match or {"app": "web"})}
    return manifest(
        "ReplicaSet", name, namespace=namespace, metadata=meta, spec={"selector": selector}
    )


def member_json(
    name: str,
    *,
    owner: str | None = "rs-web",
    on: str | None = "node-1",
    labels: Mapping[str, str] = NO_LABELS,
    ready: int | None = 3600,
    created: int = 7200,
    metadata: Document | None = None,
    **fields: Any,
) -> Document:
    """Build a v1 Pod that the ReplicaSet with UID ``owner`` controls, ready for so many seconds."""
    meta: Document = {"creationTimestamp": rfc3339(NOW - created)}
    if owner is not None:
        meta["ownerReferences"] = [reference("ReplicaSet", owner.removeprefix("rs-"), owner)]
    conditions = [] if ready is None else [condition("True", NOW - ready)]
    status = {"conditions": conditions, **fields.pop("status", {})}
    return pod_json(
        name,
        on=on,
        labels=labels or {"app": "web"},
        metadata=meta | (metadata or {}),
        status=status,
        **fields,
    )


def reference(kind: str, name: str, uid: str, **fields: Any) -> Document:
    """Build a reference to a controlling owner."""
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True} | (
        fields
    )


def controlled_by(name: str, uid: str, kind: str = "ReplicaSet") -> Document:
    """Build a controller reference that blocks the deletion of the owner in the foreground."""
    return reference(kind, name, uid, blockOwnerDeletion=True)


def a_replica_set(
    name: str = "web",
    labels: Mapping[str, str] | None = None,
    *,
    namespace: str = "default",
    uid: str = "",
    deployment: str = "",
    deleting: bool = False,
    **spec: Any,
) -> Document:
    """Build a ReplicaSet with a template, from which a controller can create pods.

    Its UID is its name unless one is given.
    """
    labels = {"app": name} if labels is None else labels
    owners = [controlled_by(deployment, deployment, "Deployment")] if deployment else None
    metadata = without_none(uid=uid or name, ownerReferences=owners)
    if deleting:
        metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}
    spec = {"selector": {"matchLabels": labels}, "template": template(labels), **spec}
    return manifest("ReplicaSet", name, namespace=namespace, metadata=metadata, spec=spec)


def template(labels: Mapping[str, str], image: str = "i") -> Document:
    """Build the pod template of a ReplicaSet or Deployment."""
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}


def a_pod(
    name: str,
    owner: str = "",
    *,
    labels: Mapping[str, str] | None = None,
    namespace: str = "default",
    node: str = "",
    phase: str = "Running",
    ready_since: str = "",
    conditions: Sequence[Document] = (),
    deleting: bool = False,
    **metadata: Any,
) -> Document:
    """Build a pod of the ReplicaSet ``owner``, by default with its labels; its UID is its name."""
    labels = {"app": owner} if labels is None and owner else labels
    owners = [controlled_by(owner, owner)] if owner else None
    meta = metadata | without_none(labels=labels or None, ownerReferences=owners)
    if deleting:
        meta |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": ready_since}
    states = [*([ready] if ready_since else []), *conditions]
    return pod_json(
        name,
        on=node or None,
        namespace=namespace,
        phase=phase,
        containers=[{"name": "c", "image": "i"}],
        metadata=meta,
        status={"conditions": states} if states else None,
    )


def condition(status: str, since: int | None, kind: str = "Ready") -> Document:
    """Build a pod's condition; ``since`` is in seconds after the epoch."""
    return {"type": kind, "status": status, "lastTransitionTime": rfc3339(since)}


def members(documents: Iterable[Mapping[str, Any]]) -> list[ReplicaSetPod]:
    """Decode pods."""
    return [decode_member(encoded(each)) for each in documents]


def replica_sets(documents: Iterable[Mapping[str, Any]]) -> list[ReplicaSet]:
    """Decode ReplicaSets."""
    return [decode_replica_set(encoded(each)) for each in documents]


def of_kind(documents: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """Return the objects of one kind."""
    return [each for each in documents if each["kind"] == kind]


def _moment(age: float | None) -> int | None:
    return None if age is None else NOW_NS - int(age * SECOND)
