"""Upstream's tables of the ReplicaSet controller, and short ways to write objects down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from extender.controllers.replicaset.types import (
    API_VERSION,
    KIND,
    OwnedPod,
    ReplicaSet,
    decode_pod,
    decode_replica_set,
)
from extender.kube.rest.transport import Request, Response
from tests.builders import manifest, pod_json, without_none

Document = dict[str, Any]
Case = Mapping[str, Any]

_TABLES: dict[str, list[Document]] = msgspec.json.decode(
    (Path(__file__).parents[3] / "vectors" / "replicaset.json").read_bytes()
)


def cases(table: str) -> pytest.MarkDecorator:
    """Run a test for each case of a table."""
    found = _TABLES[table]
    return pytest.mark.parametrize(
        "case", found, ids=[case.get("name", str(number)) for number, case in enumerate(found)]
    )


def pod(document: Document) -> OwnedPod:
    return decode_pod(orjson.dumps(document))


def replica_set(document: Document) -> ReplicaSet:
    return decode_replica_set(orjson.dumps(document))


def controlled_by(name: str, uid: str, kind: str = KIND) -> Document:
    """Write the reference to a controller."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def a_replica_set(
    name: str = "web",
    labels: Mapping[str, str] | None = None,
    *,
    namespace: str = "default",
    uid: str = "",
    deployment: str = "",
    **spec: Any,
) -> Document:
    """Write a ReplicaSet down; its UID is its name unless one is given."""
    labels = {"app": name} if labels is None else labels
    owners = [controlled_by(deployment, deployment, "Deployment")] if deployment else None
    metadata = without_none(uid=uid or name, ownerReferences=owners)
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return manifest(KIND, name, namespace=namespace, metadata=metadata, spec=spec)


def a_pod(
    name: str,
    owner: str = "",
    *,
    labels: Mapping[str, str] | None = None,
    namespace: str = "default",
    node: str = "",
    phase: str = "Running",
    ready_since: str = "",
    deleting: bool = False,
    **metadata: Any,
) -> Document:
    """Write a pod down, by default with its owner's labels; its UID is its name."""
    labels = {"app": owner} if labels is None and owner else labels
    owners = [controlled_by(owner, owner)] if owner else None
    meta = metadata | without_none(labels=labels or None, ownerReferences=owners)
    if deleting:
        meta |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": ready_since}
    return pod_json(
        name,
        on=node or None,
        namespace=namespace,
        phase=phase,
        containers=[{"name": "c", "image": "i"}],
        metadata=meta,
        status={"conditions": [ready]} if ready_since else None,
    )


class Answers:
    """A server that answers as a test says, and remembers what it was asked."""

    def __init__(self, answer: Callable[[Request], Response]) -> None:
        self._answer = answer
        self.asked: list[Request] = []

    async def request(self, request: Request) -> Response:
        self.asked.append(request)
        return self._answer(request)

    def stream(self, request: Request) -> Any:
        raise AssertionError(f"nobody watches here: {request}")

    async def close(self) -> None:
        """Nothing to close."""

    def bodies(self, method: str) -> list[Document]:
        """Return the bodies of the requests of a method."""
        return [orjson.loads(each.body or b"null") for each in self.asked if each.method == method]


def refused(status: int, reason: str = "Refused") -> Response:
    body = {"kind": "Status", "code": status, "reason": reason, "message": f"{status} {reason}"}
    return Response(status, orjson.dumps(body))


def given(document: Document) -> Response:
    return Response(200, orjson.dumps(document))
