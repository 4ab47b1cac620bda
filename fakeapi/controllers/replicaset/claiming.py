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
from fakeapi.controllers.replicaset.judging import Verdict, adoption, judge, release
from fakeapi.controllers.replicaset.podcontrol import PodControl
from fakeapi.controllers.replicaset.shapes import KIND, Pod, ReplicaSet
from fakeapi.controllers.replicaset.trouble import TROUBLES, aggregate, has_status, words


class Claims:
    """Claims pods for one ReplicaSet during one sync."""

    def __init__(self, client: Client, pods: PodControl, replica_set: ReplicaSet) -> None:
        self._client = client
        self._pods = pods
        self._replica_set = replica_set
        self._objection: str | None = None

    async def claim(self, pods: Iterable[Pod]) -> list[Pod]:
        """Return the pods that the ReplicaSet owns now, as the cache shows them.

        All pods are tried. Raises RetryError with all errors aggregated.
        """
        claimed: list[Pod] = []
        failures: list[str] = []
        for pod in pods:
            try:
                if await self._own(pod):
                    claimed.append(pod)
            except TROUBLES as trouble:
                failures.append(words(trouble))
        if failures:
            raise RetryError(aggregate(failures))
        return claimed

    async def _own(self, pod: Pod) -> bool:
        verdict = judge(self._replica_set, pod)
        if verdict is Verdict.ADOPT:
            return await self._adopt(pod)
        if verdict is Verdict.RELEASE:
            await self._release(pod)
        return verdict is Verdict.CLAIM

    async def _adopt(self, pod: Pod) -> bool:
        """Adopt a pod; return False if the pod no longer exists."""
        meta = pod.metadata
        if self._objection is None:
            self._objection = await self._recheck()
        if self._objection:
            named = f"{meta.namespace}/{meta.name} ({meta.uid})"
            raise RetryError(f"can't adopt Pod {named}: {self._objection}")
        try:
            await self._pods.patch(meta.namespace, meta.name, adoption(self._replica_set, pod))
        except TROUBLES as trouble:
            if has_status(trouble, 404):
                return False
            raise
        return True

    async def _release(self, pod: Pod) -> None:
        """Release a pod; a pod that is gone (404) or has another UID by now (422) is no error."""
        meta = pod.metadata
        patch = release(self._replica_set.metadata.uid, meta.uid)
        try:
            await self._pods.patch(meta.namespace, meta.name, patch)
        except TROUBLES as trouble:
            if not has_status(trouble, 404, 422):
                raise

    async def _recheck(self) -> str:
        """Read the ReplicaSet from the server and return why it cannot adopt; "" if it can."""
        meta = self._replica_set.metadata
        path = REPLICA_SETS.object(meta.name, meta.namespace)
        try:
            fresh = await self._client.get(path, _decode)
        except TROUBLES as trouble:
            return f"can't recheck DeletionTimestamp: {words(trouble)}"
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
