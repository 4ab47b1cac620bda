"""Scales of the controllers of pods: how many replicas are expected.

A pod of a ReplicaSet that belongs to a Deployment counts for the Deployment. Controllers of other
kinds are read through their scale subresource. Each controller counts once; a pod without a
controller does not count and is returned as unmanaged.

Source: kubernetes/pkg/controller/disruption/disruption.go (finders, getExpectedScale).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct, field

from extender.controllers.context import ControllerContext
from extender.kube.decoders.object_meta import ObjectMeta, OwnerReference
from extender.kube.informers.indexer import Indexer
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.discovery import ServedResource, discover
from extender.kube.rest.resources import REPLICA_SETS, Resource
from fakeapi.controlplane.controllers.disruption_status import BudgetError
from fakeapi.controlplane.controllers.types import Pod, decode_tolerantly

DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", namespaced=True)
STATEFUL_SETS: Final = Resource("apps", "v1", "statefulsets", namespaced=True)
REPLICATION_CONTROLLERS: Final = Resource("", "v1", "replicationcontrollers", namespaced=True)


class _ScaleSpec(Struct):
    replicas: int | None = None

    @property
    def replicas_or_default(self) -> int:
        """The number of replicas; 1 by default."""
        return 1 if self.replicas is None else self.replicas


class _ScaledWorkload(Struct):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: _ScaleSpec = field(default_factory=_ScaleSpec)


_decode = decode_tolerantly(_ScaledWorkload)
_decode_scale = msgspec.json.Decoder(_ScaledWorkload).decode


class ScaleFinder:
    """Finds the scales of workloads, in caches or through the scale subresource."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        of = context.informers.of
        self._shared = {
            resource: of(resource, _decode)
            for resource in (REPLICA_SETS, DEPLOYMENTS, STATEFUL_SETS, REPLICATION_CONTROLLERS)
        }

    async def wait_synced(self) -> None:
        """Wait until the informers of workloads have synced."""
        await asyncio.gather(*(shared.wait_synced() for shared in self._shared.values()))

    async def total(self, pods: Sequence[Pod]) -> tuple[int, Sequence[str]]:
        """Return the sum of the scales, and the names of the pods without a controller.

        Raises BudgetError, ApiError.
        """
        scales: dict[str, int] = {}
        controllers: dict[str, None] = {}
        unmanaged = []
        for pod in pods:
            owner = pod.metadata.controller
            if owner is None:
                unmanaged.append(pod.metadata.name)
            elif owner.uid not in controllers:
                uid, scale = await self._of(pod, owner)
                controllers[owner.uid] = None
                scales[uid] = scale
        return sum(scales.values()), unmanaged

    async def _of(self, pod: Pod, owner: OwnerReference) -> tuple[str, int]:
        found = self._from_caches(owner, pod.metadata.namespace)
        if found is None:
            found = await self._from_scale_subresource(owner, pod.metadata.namespace)
        if found is None:
            raise BudgetError(f'found no controllers for pod "{pod.metadata.name}"')
        return found

    def _from_caches(self, owner: OwnerReference, namespace: str) -> tuple[str, int] | None:
        group = owner.api_version.rpartition("/")[0]
        match (owner.kind, group):
            case ("ReplicationController", ""):
                return self._scale(REPLICATION_CONTROLLERS, owner, namespace)
            case ("StatefulSet", "apps"):
                return self._scale(STATEFUL_SETS, owner, namespace)
            case ("ReplicaSet", "apps" | "extensions"):
                return self._of_replica_set(owner, namespace)
        return None

    def _of_replica_set(self, owner: OwnerReference, namespace: str) -> tuple[str, int] | None:
        replica_set = self._objects(REPLICA_SETS).get(f"{namespace}/{owner.name}")
        if replica_set is None or replica_set.metadata.uid != owner.uid:
            return None
        above = replica_set.metadata.controller
        if above is not None and above.kind == "Deployment":
            return self._scale(DEPLOYMENTS, above, namespace)
        return owner.uid, replica_set.spec.replicas_or_default

    def _scale(
        self, resource: Resource, owner: OwnerReference, namespace: str
    ) -> tuple[str, int] | None:
        found = self._objects(resource).get(f"{namespace}/{owner.name}")
        if found is None or found.metadata.uid != owner.uid:
            return None
        return owner.uid, found.spec.replicas_or_default

    def _objects(self, resource: Resource) -> Indexer[_ScaledWorkload]:
        return self._shared[resource].objects

    async def _from_scale_subresource(
        self, owner: OwnerReference, namespace: str
    ) -> tuple[str, int] | None:
        """Read the scale subresource of an owner of any kind."""
        served = (await discover(self._client)).of_kind(owner.api_version, owner.kind)
        if served is None:
            what = f'"{owner.kind}" in version "{owner.api_version}"'
            raise BudgetError(f"no matches for kind {what}")
        path = served.resource.object(owner.name, namespace).subresource("scale")
        try:
            scale = await self._client.get(path, _decode_scale)
        except ApiError as error:
            if error.status != 404:
                raise
            _check_scale(served)
            return None
        return (owner.uid, scale.spec.replicas or 0) if scale.metadata.uid == owner.uid else None


def _check_scale(served: ServedResource) -> None:
    """Raise BudgetError if a kind has no scale subresource."""
    if "scale" not in served.subresources:
        raise BudgetError(f"{served.resource} does not implement the scale subresource")
