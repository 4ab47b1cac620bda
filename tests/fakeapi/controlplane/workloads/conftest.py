"""Stages with the controllers of workloads, a scheduler, and kubelets that run pods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from extender.kube.rest.resources import PODS, REPLICA_SETS
from tests.builders import Document, workload_json
from tests.stage import Opener, Stage, opener

SCRIPT: Final = {
    "register": [{"name": "node-{}", "count": 3}],
    "pods": [
        {"match": {"labels": {"state": "stuck"}}, "start": "10h", "stop": "1s"},
        {
            "match": {"labels": {"end": "succeed"}},
            "start": "1s",
            "stages": [{"after": 5, "exit": 0}],
        },
        {"match": {"labels": {"end": "fail"}}, "start": "1s", "stages": [{"after": 5, "exit": 1}]},
        {"match": {}, "start": "1s", "stop": "1s"},
    ],
}
"""Pods run after a second; those labelled ``state: stuck`` never do, others end after five more."""


class WorkloadStage(Stage):
    """A stage, and short methods that read pods and what controls them."""

    async def pods(self, **labels: str) -> list[Document]:
        """Return the pods with labels, by name."""
        found = [
            pod
            for pod in await self.all(PODS)
            if labels.items() <= pod["metadata"].get("labels", {}).items()
        ]
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))

    async def replica_sets(self) -> dict[str, int]:
        """Return the revisions of ReplicaSets and their replicas."""
        found = await self.all(REPLICA_SETS)
        sizes = {
            each["metadata"]["annotations"]["deployment.kubernetes.io/revision"]: each["spec"][
                "replicas"
            ]
            for each in found
        }
        return dict(sorted(sizes.items()))


def workload(kind: str, replicas: int = 3, image: str = "v1", **spec: Any) -> Document:
    """Build a workload ``web`` whose pods run an image."""
    labels = spec.pop("labels", {})
    return workload_json(kind, "web", replicas, labels=labels, pod=containers(image), **spec)


def containers(image: str, **fields: Any) -> Document:
    """Return the spec of a pod with one container."""
    return {"containers": [{"name": "main", "image": image}], **fields}


def template(image: str = "v1", **labels: str) -> Document:
    """Return the change of a workload's template to an image and labels."""
    return {"spec": {"template": {"metadata": {"labels": labels}, "spec": containers(image)}}}


def conditions(status: Document) -> dict[str, tuple[str, str]]:
    """Return the status and the reason of each condition."""
    return {each["type"]: (each["status"], each["reason"]) for each in status.get("conditions", [])}


SetWorkloads = Opener[WorkloadStage]


@pytest.fixture
async def workloads() -> AsyncIterator[SetWorkloads]:
    """Return a function that opens stages with the components of ``run`` and objects."""
    async with opener(WorkloadStage, kubelet=SCRIPT) as create:
        yield lambda run, *objects, **options: create(
            f"{run},replicaset,kubelet,scheduler,gc", *objects, **options
        )
