"""Reads and writes of the garbage collector, for objects of any kind.

Owners are removed from an object by a strategic merge patch, which leaves concurrent changes of
other references alone. Custom resources do not support such patches; their references are replaced
as a whole, with the resourceVersion that was read. Every write states the UID or the version it is
meant for. A missing object is no error; a conflict is, and the caller retries.

All methods raise ApiError, MalformedError, TransportError.

Source: kubernetes/pkg/controller/garbagecollector/operations.go, patch.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from extender.kube.decoders.object_meta import ObjectMeta, OwnerReference, decode_partial
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client, PatchType, Propagation
from extender.kube.rest.resources import ObjectPath

RemainingOwners: TypeAlias = Callable[[ObjectMeta], list[OwnerReference]]


class OwnedObjects:
    """Deletes and patches objects for the garbage collector."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def delete(self, path: ObjectPath, latest: ObjectMeta, how: Propagation) -> bool:
        """Delete an object unless it has changed; return False if it does not exist."""
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
        """Remove owners, by their UIDs, from an object's references."""
        leaving = [{"$patch": "delete", "uid": owner} for owner in owners]
        patch = {"metadata": {"uid": uid, "ownerReferences": leaving}}

        def rest(meta: ObjectMeta) -> list[OwnerReference]:
            return [owner for owner in meta.owner_references or () if owner.uid not in owners]

        await self._patch_owners(path, patch, rest)

    async def unblock_owners(
        self, path: ObjectPath, uid: str, owners: Sequence[OwnerReference]
    ) -> None:
        """Set blockOwnerDeletion to false in an object's references."""
        blocking = [_unblocked(owner) for owner in owners if owner.block_owner_deletion]
        patch = {"metadata": {"uid": uid, "ownerReferences": blocking}}

        def unblocked(meta: ObjectMeta) -> list[OwnerReference]:
            return [_unblocked(owner) for owner in meta.owner_references or ()]

        await self._patch_owners(path, patch, unblocked)

    async def _patch_owners(self, path: ObjectPath, patch: Any, of: RemainingOwners) -> None:
        """Patch strategically; use a merge patch of all references for custom resources."""
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
        """Remove a finalizer, if the object has it."""
        meta = await self.get(path)
        if meta is None or finalizer not in (meta.finalizers or ()):
            return
        rest = [each for each in meta.finalizers or () if each != finalizer]
        metadata = {"resourceVersion": meta.resource_version, "finalizers": rest}
        await self._patch(path, PatchType.MERGE, {"metadata": metadata})

    async def _patch(self, path: ObjectPath, kind: PatchType, patch: Any) -> None:
        await self._client.patch(path, kind, msgspec.json.encode(patch), bytes)

    async def get(self, path: ObjectPath) -> ObjectMeta | None:
        """Return an object's metadata; None if it does not exist."""
        partial = await self._client.find(path, decode_partial)
        return None if partial is None else partial.metadata


def _unblocked(owner: OwnerReference) -> OwnerReference:
    if not owner.block_owner_deletion:
        return owner
    return msgspec.structs.replace(owner, block_owner_deletion=False)
