"""Claim, adopt and release pods, one after another.

    controlled by                selector matches   does not match
    another UID                  ignored            ignored
    this ReplicaSet              claimed            released, unless the ReplicaSet is deleting
    none, in its namespace       adopted, unless    ignored
                                 either is deleting

Before the first adoption the ReplicaSet is read from the API server: the cache may be stale, and a
ReplicaSet that is being deleted must not adopt pods. The result of this check is used for all
adoptions of one sync.

Source: controller_ref_manager.go (ClaimPods, ClaimObject, RecheckDeletionTimestamp),
controller_utils.go (FilterClaimedPods).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Any

from extender.controllers.replicaset.pod_control import (
    SYNC_ERRORS,
    PodControl,
    aggregate_messages,
    error_message,
    has_status,
)
from extender.controllers.replicaset.types import KIND, OwnedPod, ReplicaSet, controller_reference
from extender.kube.controller_runtime.controller import RetryError
from extender.kube.decoders.object_meta import decode_partial
from extender.kube.rest.client import Client, response_decoder
from extender.kube.rest.resources import REPLICA_SETS

_decode = response_decoder(f"a {KIND}", lambda raw: decode_partial(raw).metadata)


class ClaimDecision(Enum):
    """The action that a ReplicaSet takes on a pod."""

    CLAIM = auto()
    ADOPT = auto()
    RELEASE = auto()
    IGNORE = auto()


def decide_claim(replica_set: ReplicaSet, pod: OwnedPod) -> ClaimDecision:
    """Return what a ReplicaSet does with a pod."""
    controller, meta = pod.metadata.controller, replica_set.metadata
    matches = selects(replica_set, pod)
    if controller is None:
        deleting = meta.deleting or pod.metadata.deleting
        adopts = matches and not deleting and meta.namespace == pod.metadata.namespace
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


def selects(replica_set: ReplicaSet, pod: OwnedPod) -> bool:
    """Return whether a ReplicaSet's selector matches a pod; a missing selector matches nothing."""
    selector = replica_set.selector
    return selector is not None and selector.matches(pod.labels)


def adoption_patch(replica_set: ReplicaSet, pod: OwnedPod) -> dict[str, Any]:
    """Return the patch that adopts a pod; the UID in it excludes another pod of the same name."""
    references = [controller_reference(replica_set)]
    return {"metadata": {"ownerReferences": references, "uid": pod.metadata.uid}}


def release_patch(owner_uid: str, pod_uid: str) -> dict[str, Any]:
    """Return the patch that releases a pod."""
    references = [{"$patch": "delete", "uid": owner_uid}]
    return {"metadata": {"uid": pod_uid, "ownerReferences": references}}


class PodControllerRefManager:
    """Claims pods for one ReplicaSet during one sync."""

    def __init__(self, client: Client, pods: PodControl, replica_set: ReplicaSet) -> None:
        self._client = client
        self._pods = pods
        self._replica_set = replica_set
        self._objection: str | None = None

    async def claim_pods(self, pods: Iterable[OwnedPod]) -> list[OwnedPod]:
        """Return the pods that the ReplicaSet owns now, as the cache shows them.

        All pods are tried. Raises RetryError with all errors aggregated.
        """
        claimed: list[OwnedPod] = []
        failures: list[str] = []
        for pod in pods:
            try:
                if await self._claim_pod(pod):
                    claimed.append(pod)
            except SYNC_ERRORS as error:
                failures.append(error_message(error))
        if failures:
            raise RetryError(aggregate_messages(failures))
        return claimed

    async def _claim_pod(self, pod: OwnedPod) -> bool:
        decision = decide_claim(self._replica_set, pod)
        if decision is ClaimDecision.ADOPT:
            return await self._adopt(pod)
        if decision is ClaimDecision.RELEASE:
            await self._release(pod)
        return decision is ClaimDecision.CLAIM

    async def _adopt(self, pod: OwnedPod) -> bool:
        """Adopt a pod; return False if the pod no longer exists."""
        meta = pod.metadata
        if self._objection is None:
            self._objection = await self._adoption_error()
        if self._objection:
            named = f"{meta.namespace}/{meta.name} ({meta.uid})"
            raise RetryError(f"can't adopt Pod {named}: {self._objection}")
        try:
            patch = adoption_patch(self._replica_set, pod)
            await self._pods.patch(meta.namespace, meta.name, patch)
        except SYNC_ERRORS as error:
            if has_status(error, 404):
                return False
            raise
        return True

    async def _release(self, pod: OwnedPod) -> None:
        """Release a pod; a pod that is gone (404) or has another UID by now (422) is no error."""
        meta = pod.metadata
        patch = release_patch(self._replica_set.metadata.uid, meta.uid)
        try:
            await self._pods.patch(meta.namespace, meta.name, patch)
        except SYNC_ERRORS as error:
            if not has_status(error, 404, 422):
                raise

    async def _adoption_error(self) -> str:
        """Read the ReplicaSet from the server and return why it cannot adopt; "" if it can."""
        meta = self._replica_set.metadata
        path = REPLICA_SETS.object(meta.name, meta.namespace)
        try:
            fresh = await self._client.get(path, _decode)
        except SYNC_ERRORS as error:
            return f"can't recheck DeletionTimestamp: {error_message(error)}"
        if fresh.uid != meta.uid:
            gone = f"original {KIND} {meta.key} is gone: got uid {fresh.uid}, wanted {meta.uid}"
            return f"can't recheck DeletionTimestamp: {gone}"
        if fresh.deleting:
            return f"{meta.key} has just been deleted at {fresh.deletion_timestamp}"
        return ""
