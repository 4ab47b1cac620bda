"""Claim, adopt and release the pods of a workload, or other objects, one after another.

    controlled by                selector matches   does not match
    another UID                  ignored            ignored
    this workload                claimed            released, unless the workload is deleting
    none, in its namespace       adopted, unless    ignored
                                 either is deleting

Before the first adoption the workload is read from the API server: the cache may be stale, and a
workload that is being deleted must not adopt pods. The result of this check is used for all
adoptions of one sync.

Source: controller_ref_manager.go (ClaimPods, ClaimObject, RecheckDeletionTimestamp),
controller_utils.go (FilterClaimedPods).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import Enum, auto
from typing import Any, Generic, TypeVar

from extender.controllers.replicaset.pod_control import (
    SYNC_ERRORS,
    aggregate_messages,
    error_message,
    has_status,
)
from extender.controllers.replicaset.types import (
    OwnedPod,
    PodOwner,
    ReplicaSet,
    controller_reference,
)
from extender.kube.controller_runtime.controller import RetryError
from extender.kube.decoders.object_meta import decode_partial
from extender.kube.informers.indexer import IndexedObject
from extender.kube.rest.client import Client, response_decoder
from extender.kube.rest.resources import Resource

T = TypeVar("T", bound=IndexedObject)
PatchObject = Callable[[str, str, Mapping[str, Any]], Awaitable[None]]
"""Patches the object of a namespace and name; raises one of ``SYNC_ERRORS``."""


class ClaimDecision(Enum):
    """The action that a workload takes on a pod or another object."""

    CLAIM = auto()
    ADOPT = auto()
    RELEASE = auto()
    IGNORE = auto()


def decide_claim(owner: PodOwner, item: IndexedObject) -> ClaimDecision:
    """Return what a workload does with a pod or another object."""
    controller, meta = item.metadata.controller, owner.metadata
    matches = selects(owner, item)
    if controller is None:
        deleting = meta.deleting or item.metadata.deleting
        adopts = matches and not deleting and meta.namespace == item.metadata.namespace
        return ClaimDecision.ADOPT if adopts else ClaimDecision.IGNORE
    if controller.uid != meta.uid:
        return ClaimDecision.IGNORE
    if matches:
        return ClaimDecision.CLAIM
    return ClaimDecision.IGNORE if meta.deleting else ClaimDecision.RELEASE


def terminating_pods(replica_set: ReplicaSet, pods: Iterable[OwnedPod]) -> list[OwnedPod]:
    """Return the terminating pods that a ReplicaSet owns; terminating pods are never adopted."""
    return [
        pod
        for pod in pods
        if pod.terminating and decide_claim(replica_set, pod) is ClaimDecision.CLAIM
    ]


def selects(owner: PodOwner, item: IndexedObject) -> bool:
    """Return whether a workload's selector matches an object; a missing one matches nothing."""
    selector = owner.selector
    return selector is not None and selector.matches(item.metadata.labels or {})


def adoption_patch(owner: PodOwner, item: IndexedObject) -> dict[str, Any]:
    """Return the patch that adopts an object; the UID excludes another one of the same name."""
    references = [controller_reference(owner)]
    return {"metadata": {"ownerReferences": references, "uid": item.metadata.uid}}


def release_patch(owner_uid: str, item_uid: str) -> dict[str, Any]:
    """Return the patch that releases an object."""
    references = [{"$patch": "delete", "uid": owner_uid}]
    return {"metadata": {"uid": item_uid, "ownerReferences": references}}


class ControllerRefManager(Generic[T]):
    """Claims objects for one workload during one sync.

    ``resource`` is that of the workload, ``kind`` that of the objects, for messages.
    """

    def __init__(
        self, client: Client, owner: PodOwner, resource: Resource, kind: str, patch: PatchObject
    ) -> None:
        self._client = client
        self._owner = owner
        self._resource = resource
        self._kind = kind
        self._patch = patch
        self._objection: str | None = None

    async def claim(self, items: Iterable[T]) -> list[T]:
        """Return the objects that the workload owns now, as the cache shows them.

        All objects are tried. Raises RetryError with all errors aggregated.
        """
        claimed: list[T] = []
        failures: list[str] = []
        for item in items:
            try:
                if await self._claim_object(item):
                    claimed.append(item)
            except SYNC_ERRORS as error:
                failures.append(error_message(error))
        if failures:
            raise RetryError(aggregate_messages(failures))
        return claimed

    async def _claim_object(self, item: T) -> bool:
        decision = decide_claim(self._owner, item)
        if decision is ClaimDecision.ADOPT:
            return await self._adopt(item)
        if decision is ClaimDecision.RELEASE:
            await self._release(item)
        return decision is ClaimDecision.CLAIM

    async def _adopt(self, item: T) -> bool:
        """Adopt an object; return False if it no longer exists."""
        meta = item.metadata
        if self._objection is None:
            self._objection = await self._adoption_error()
        if self._objection:
            named = f"{meta.namespace}/{meta.name} ({meta.uid})"
            raise RetryError(f"can't adopt {self._kind} {named}: {self._objection}")
        try:
            await self._patch(meta.namespace, meta.name, adoption_patch(self._owner, item))
        except SYNC_ERRORS as error:
            if has_status(error, 404):
                return False
            raise
        return True

    async def _release(self, item: T) -> None:
        """Release an object; one that is gone (404) or has another UID by now (422) is no error."""
        meta = item.metadata
        patch = release_patch(self._owner.metadata.uid, meta.uid)
        try:
            await self._patch(meta.namespace, meta.name, patch)
        except SYNC_ERRORS as error:
            if not has_status(error, 404, 422):
                raise

    async def _adoption_error(self) -> str:
        """Read the workload from the server and return why it cannot adopt; "" if it can."""
        meta, kind = self._owner.metadata, self._owner.reference.kind
        path = self._resource.object(meta.name, meta.namespace)
        decode = response_decoder(f"a {kind}", lambda raw: decode_partial(raw).metadata)
        try:
            fresh = await self._client.get(path, decode)
        except SYNC_ERRORS as error:
            return f"can't recheck DeletionTimestamp: {error_message(error)}"
        if fresh.uid != meta.uid:
            gone = f"original {kind} {meta.key} is gone: got uid {fresh.uid}, wanted {meta.uid}"
            return f"can't recheck DeletionTimestamp: {gone}"
        if fresh.deleting:
            return f"{meta.key} has just been deleted at {fresh.deletion_timestamp}"
        return ""
