"""What garbage collection writes into objects of any kind, and reads of them.

Owners are taken out of an object by a strategic merge patch, which leaves all others alone whatever
else happens meanwhile; custom resources know no such patch, and have their references replaced as a
whole, if they are still those that were read. Every write names the UID or the version it is meant
for. An object that has gone meanwhile is no error, a conflict is: the caller looks again.

All methods raise ApiError, MalformedError, TransportError.

Source: kubernetes/pkg/controller/garbagecollector/operations.go, patch.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from extender.kube.api_error import ApiError
from extender.kube.client import Client, PatchType, Propagation
from extender.kube.metadata import ObjectMeta, OwnerReference, decode_partial
from extender.kube.resources import ObjectPath

Rest: TypeAlias = Callable[[ObjectMeta], list[OwnerReference]]


class OwnedObjects:
    """Objects behind a client, as garbage collection deals with them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def delete(self, path: ObjectPath, latest: ObjectMeta, how: Propagation) -> bool:
        """Delete what has not changed since it was looked at; False if it has gone already."""
        version = latest.resource_version
        try:
            await self._client.delete(
                path, uid=latest.uid, resource_version=version, propagation=how
            )
        except ApiError as error:
            if error.status == 404:
                return False
            now = await self.get(path) if error.status == 409 else None
            if now is None or now.owner_references != latest.owner_references:
                raise
            await self._client.delete(path, uid=latest.uid, propagation=how)
        return True

    async def remove_owners(self, path: ObjectPath, uid: str, owners: Sequence[str]) -> None:
        """Take owners, by their UIDs, out of an object's references."""
        leaving = [{"$patch": "delete", "uid": owner} for owner in owners]
        patch = {"metadata": {"uid": uid, "ownerReferences": leaving}}

        def rest(meta: ObjectMeta) -> list[OwnerReference]:
            return [owner for owner in meta.owner_references or () if owner.uid not in owners]

        await self._patch_owners(path, patch, rest)

    async def unblock_owners(
        self, path: ObjectPath, uid: str, owners: Sequence[OwnerReference]
    ) -> None:
        """Let an object's references block nobody's deletion any more."""
        blocking = [_unblocked(owner) for owner in owners if owner.block_owner_deletion]
        patch = {"metadata": {"uid": uid, "ownerReferences": blocking}}

        def unblocked(meta: ObjectMeta) -> list[OwnerReference]:
            return [_unblocked(owner) for owner in meta.owner_references or ()]

        await self._patch_owners(path, patch, unblocked)

    async def _patch_owners(self, path: ObjectPath, patch: Any, of: Rest) -> None:
        """Patch strategically; custom resources, which cannot be, are patched as a whole."""
        try:
            await self._patch(path, PatchType.STRATEGIC, patch)
        except ApiError as error:
            if error.status == 404:
                return
            if error.status != 415:
                raise
            if meta := await self.get(path):
                metadata = {"resourceVersion": meta.resource_version, "ownerReferences": of(meta)}
                await self._patch(path, PatchType.MERGE, {"metadata": metadata})

    async def remove_finalizer(self, path: ObjectPath, finalizer: str) -> None:
        """Take a finalizer away, if it is there."""
        meta = await self.get(path)
        if meta is None or finalizer not in (meta.finalizers or ()):
            return
        rest = [each for each in meta.finalizers or () if each != finalizer]
        metadata = {"resourceVersion": meta.resource_version, "finalizers": rest}
        await self._patch(path, PatchType.MERGE, {"metadata": metadata})

    async def _patch(self, path: ObjectPath, kind: PatchType, patch: Any) -> None:
        await self._client.patch(path, kind, msgspec.json.encode(patch), bytes)

    async def get(self, path: ObjectPath) -> ObjectMeta | None:
        """Return an object's metadata, None if there is none."""
        try:
            return (await self._client.get(path, decode_partial)).metadata
        except ApiError as error:
            if error.status == 404:
                return None
            raise


def _unblocked(owner: OwnerReference) -> OwnerReference:
    if not owner.block_owner_deletion:
        return owner
    return msgspec.structs.replace(owner, block_owner_deletion=False)
