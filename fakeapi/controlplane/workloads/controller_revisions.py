"""The history of a workload: a ControllerRevision for each of its pod templates.

A template that an old revision has makes that one the newest again.

Source: kubernetes/pkg/controller/history/controller_history.go.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from extender.controllers.context import ControllerContext
from extender.controllers.replicaset.types import controller_reference
from extender.kube.decoders.object_meta import ObjectMeta
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import Resource
from fakeapi.controlplane.controllers.types import decode_tolerantly
from fakeapi.controlplane.workloads.types import (
    ObjectKind,
    PodTemplate,
    Workload,
    canonical,
    compute_hash,
)
from fakeapi.controlplane.workloads.workload_caches import WorkloadCaches

HASH_LABEL: Final = "controller-revision-hash"
DEFAULT_LIMIT: Final = 10

_MAX_NAME_LENGTH: Final = 223

W = TypeVar("W", bound=Workload)


class _RevisedSpec(Struct):
    template: PodTemplate = field(default_factory=PodTemplate)


class _RevisedData(Struct):
    spec: _RevisedSpec = field(default_factory=_RevisedSpec)


class ControllerRevision(Struct):
    """apps/v1.ControllerRevision."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    revision: int = 0
    data: Raw = Raw(b"{}")

    @property
    def hash(self) -> str:
        """The hash in its name."""
        return self.metadata.name.rpartition("-")[2]

    @property
    def template(self) -> PodTemplate:
        """The pod template."""
        return msgspec.json.decode(self.data, type=_RevisedData).spec.template


CONTROLLER_REVISIONS: Final = ObjectKind(
    "ControllerRevision",
    Resource("apps", "v1", "controllerrevisions", namespaced=True),
    decode_tolerantly(ControllerRevision),
)


class RevisionHistory(Generic[W]):
    """The ControllerRevisions of the workloads of one kind, with their hash in a label."""

    def __init__(self, context: ControllerContext, workload: ObjectKind[W], label: str) -> None:
        self._client = context.client
        self._label = label
        self.caches = WorkloadCaches(context, workload, CONTROLLER_REVISIONS)

    async def wait_synced(self) -> None:
        """Wait until the cache has synced."""
        await self.caches.controlled.wait_synced()

    def of(self, workload: W) -> list[ControllerRevision]:
        """Return the revisions of a workload, the oldest first."""
        found = self.caches.controlled_by(workload)
        return sorted(found, key=lambda each: (each.revision, each.metadata.name))

    async def update_revision(self, workload: W) -> ControllerRevision:
        """Return the newest revision, which has the workload's template."""
        revisions, wanted = self.of(workload), canonical(_data(workload))
        following = revisions[-1].revision + 1 if revisions else 1
        equal = [each for each in revisions if canonical(each.data) == wanted]
        if not equal:
            return await self._create(workload, following)
        if equal[-1] is revisions[-1]:
            return equal[-1]
        return await self.caches.patch(workload, equal[-1], {"revision": following})

    async def truncate(self, workload: W, live: Container[str]) -> None:
        """Delete the oldest revisions beyond revisionHistoryLimit that are not ``live``."""
        limit = workload.spec.revision_history_limit
        unused = [each for each in self.of(workload) if each.metadata.name not in live]
        for each in unused[: max(0, len(unused) - (DEFAULT_LIMIT if limit is None else limit))]:
            await self.caches.delete(each)

    async def _create(self, workload: W, revision: int) -> ControllerRevision:
        """Create a revision; one that exists but is not in the cache yet is read instead."""
        meta, hashed = workload.metadata, compute_hash(workload.spec.template)
        name = f"{meta.name[:_MAX_NAME_LENGTH]}-{hashed}"
        labels = {**workload.spec.template.metadata.labels, self._label: hashed}
        document = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": name,
                "labels": labels,
                "annotations": meta.annotations or {},
                "ownerReferences": [controller_reference(workload)],
            },
            "data": _data(workload),
            "revision": revision,
        }
        try:
            return await self.caches.create(workload, document)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        path = CONTROLLER_REVISIONS.resource.object(name, meta.namespace)
        return await self._client.get(path, CONTROLLER_REVISIONS.decode)


def _data(workload: Workload) -> dict[str, Any]:
    """Return the patch that brings a workload back to its template."""
    template = workload.spec.template
    replaced = {"metadata": template.metadata, "spec": template.spec, "$patch": "replace"}
    return {"spec": {"template": replaced}}
