"""Claim, adopt and release pods, one after another.

Before the first adoption the ReplicaSet is read from the API server: the cache may be stale, and a
ReplicaSet that is being deleted must not adopt pods. The result of this check is used for all
adoptions of one sync.

Source: controller_ref_manager.go (ClaimPods, RecheckDeletionTimestamp).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from extender.kube.api_error import MalformedError
from extender.kube.client import Client
from extender.kube.controller import RetryError
from extender.kube.metadata import ObjectMeta, decode_partial
from extender.kube.resources import REPLICA_SETS
from fakeapi.controllers.replicaset.judging import (
    ClaimDecision,
    adoption_patch,
    decide_claim,
    release_patch,
)
from fakeapi.controllers.replicaset.podcontrol import PodControl
from fakeapi.controllers.replicaset.shapes import KIND, OwnedPod, ReplicaSet
from fakeapi.controllers.replicaset.trouble import (
    SYNC_ERRORS,
    aggregate_messages,
    error_message,
    has_status,
)


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
            except SYNC_ERRORS as trouble:
                failures.append(error_message(trouble))
        if failures:
            raise RetryError(aggregate_messages(failures))
        return claimed

    async def _claim_pod(self, pod: OwnedPod) -> bool:
        verdict = decide_claim(self._replica_set, pod)
        if verdict is ClaimDecision.ADOPT:
            return await self._adopt(pod)
        if verdict is ClaimDecision.RELEASE:
            await self._release(pod)
        return verdict is ClaimDecision.CLAIM

    async def _adopt(self, pod: OwnedPod) -> bool:
        """Adopt a pod; return False if the pod no longer exists."""
        meta = pod.metadata
        if self._objection is None:
            self._objection = await self._adoption_error()
        if self._objection:
            named = f"{meta.namespace}/{meta.name} ({meta.uid})"
            raise RetryError(f"can't adopt Pod {named}: {self._objection}")
        try:
            await self._pods.patch(
                meta.namespace, meta.name, adoption_patch(self._replica_set, pod)
            )
        except SYNC_ERRORS as trouble:
            if has_status(trouble, 404):
                return False
            raise
        return True

    async def _release(self, pod: OwnedPod) -> None:
        """Release a pod; a pod that is gone (404) or has another UID by now (422) is no error."""
        meta = pod.metadata
        patch = release_patch(self._replica_set.metadata.uid, meta.uid)
        try:
            await self._pods.patch(meta.namespace, meta.name, patch)
        except SYNC_ERRORS as trouble:
            if not has_status(trouble, 404, 422):
                raise

    async def _adoption_error(self) -> str:
        """Read the ReplicaSet from the server and return why it cannot adopt; "" if it can."""
        meta = self._replica_set.metadata
        path = REPLICA_SETS.object(meta.name, meta.namespace)
        try:
            fresh = await self._client.get(path, _decode)
        except SYNC_ERRORS as trouble:
            return f"can't recheck DeletionTimestamp: {error_message(trouble)}"
        if fresh.uid != meta.uid:
            gone = f"original {KIND} {meta.key} is gone: got uid {fresh.uid}, wanted {meta.uid}"
            return f"can't recheck DeletionTimestamp: {gone}"
        if fresh.deleting:
            return f"{meta.key} has just been deleted at {fresh.deletion_timestamp}"
        return ""


def _decode(raw: msgspec.Raw) -> ObjectMeta:
    try:
        return decode_partial(raw).metadata
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedError(f"not a {KIND}: {error}") from error
