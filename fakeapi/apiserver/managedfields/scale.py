"""The owners of an object's replicas as the owners of a Scale's, and back.

A write to the scale subresource is tracked on the Scale, whose only field that can be owned is
``spec.replicas``. Afterwards its owners are merged with those of the object: an owner that no
longer owns the replicas of the Scale loses those of the object, and keeps the other fields.

    the object's                          of the Scale               after a write by B
    A: Update apps/v1 {a, replicas}       A: Update autoscaling/v1   A: Update apps/v1 {a}
                                                                     B: Update apps/v1 {replicas}

As upstream, an owner that the object did not have has no time.

Source: k8s.io/apimachinery/pkg/util/managedfields/scalehandler.go, v1.37.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from fakeapi.apiserver.managedfields.entries import (
    UPDATE,
    OwnedFields,
    Owner,
    Owners,
    write_entries,
)
from fakeapi.apiserver.managedfields.field_set import Path, contains, difference, set_of
from fakeapi.apiserver.managedfields.update import stored_owners

SCALE_VERSION: Final = "autoscaling/v1"
_REPLICAS: Final[Path] = ("f:spec", "f:replicas")


@dataclass(frozen=True, slots=True)
class ReplicasOwners:
    """The owners of an object of ``version``, whose replicas are at ``path``."""

    owners: Owners
    version: str
    path: Path = _REPLICAS

    @classmethod
    def of(cls, document: dict[str, Any], version: str, path: Path = _REPLICAS) -> ReplicasOwners:
        """Return the owners of a stored object."""
        return cls(stored_owners(document["metadata"].get("managedFields") or ()), version, path)

    def scale_entries(self) -> list[dict[str, Any]]:
        """Return the managed fields of the object's Scale."""
        owners = {
            _of_scale(owner): OwnedFields(set_of(_REPLICAS), SCALE_VERSION, owned.time)
            for owner, owned in self.owners.items()
            if self._owns_replicas(owned)
        }
        return write_entries(owners, {})

    def entries(self, scale_entries: Any) -> list[dict[str, Any]]:
        """Return the managed fields of the object after a write of its Scale."""
        written = {
            owner: owned
            for owner, owned in stored_owners(scale_entries or ()).items()
            if contains(owned.fields, _REPLICAS)
        }
        merged = {}
        for owner, owned in self.owners.items():
            if not self._owns_replicas(owned) or written.pop(owner, None) is not None:
                merged[owner] = owned
            elif left := difference(owned.fields, set_of(self.path)):
                merged[owner] = replace(owned, fields=left)
        for owner in written:
            merged[owner] = OwnedFields(set_of(self.path), self.version)
        return write_entries(merged, self.owners)

    def _owns_replicas(self, owned: OwnedFields) -> bool:
        return owned.version == self.version and contains(owned.fields, self.path)


def _of_scale(owner: Owner) -> Owner:
    return replace(owner, version=SCALE_VERSION) if owner.operation == UPDATE else owner
