"""The consistency store: whether a controller's caches show the controller's own writes.

A controller reads caches that lag behind the server. After its own writes it should not sync before
the caches have caught up, or it repeats what it has already done. Guarantees:

- For each owner (and each resource that is written on its behalf) the store keeps the newest
  version written, independent of the order of the responses.
- An owner that is recreated under the same name has no writes.
- Once the caches have caught up, the record is dropped, and the check costs nothing.
- Versions that cannot be compared do not block: a cache that was never filled, a version that is
  not a decimal number without leading zeros.

A write that was not recorded (its response was lost) is not waited for. The store saves work; it
does not replace expectations (creations and deletions that were requested and not yet observed).

Source: kubernetes/pkg/controller/util/consistency (consistency_store.go) as of 1.36, and
k8s.io/apimachinery/pkg/util/resourceversion. Newer upstream waits for a cache that was never
filled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from extender.kube.rest.resources import Resource

_COMPARABLE: Final = re.compile(r"[1-9][0-9]*", re.ASCII)


class ObjectVersion(Protocol):
    """The version of a cache; a reflector has one."""

    @property
    def resource_version(self) -> str:
        """The version that the cache has reached, "" before the first list."""
        ...


@dataclass(frozen=True, slots=True)
class StaleCache:
    """A cache that does not show a write yet."""

    resource: Resource
    read: str
    written: str

    def __str__(self) -> str:
        return (
            f"read version: {self.read} is not as new as written version: {self.written} "
            f"for group resource {self.resource}"
        )


@dataclass(slots=True)
class _Record:
    uid: str
    versions: dict[Resource, str] = field(default_factory=dict)


class ConsistencyStore:
    """The versions written for each owner, compared with those of ``caches``.

    An owner is named ``namespace/name``. Record only resources that have a cache.
    """

    def __init__(self, caches: Mapping[Resource, ObjectVersion]) -> None:
        self._caches = caches
        self._records: dict[str, _Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def wrote(self, owner: str, uid: str, resource: Resource, version: str) -> None:
        """Record that a write for an owner with this UID resulted in an object of this version."""
        record = self._records.get(owner)
        if record is None or record.uid != uid:
            record = self._records[owner] = _Record(uid)
        before = record.versions.get(resource)
        if _comparable(version) if before is None else _newer(version, before):
            record.versions[resource] = version

    def stale(self, owner: str) -> StaleCache | None:
        """Return a cache that lags behind an owner's writes; None if all have caught up."""
        record = self._records.get(owner)
        for resource, written in (record.versions if record else {}).items():
            read = self._caches[resource].resource_version
            if _newer(written, read):
                return StaleCache(resource, read, written)
        self._records.pop(owner, None)
        return None

    def clear(self, owner: str, uid: str = "") -> None:
        """Drop an owner's record, if its UID matches ("" matches any)."""
        record = self._records.get(owner)
        if record is not None and uid in ("", record.uid):
            del self._records[owner]


def _comparable(version: str) -> bool:
    return _COMPARABLE.fullmatch(version) is not None


def _newer(version: str, than: str) -> bool:
    """Return whether a version is newer than another; False if they cannot be compared."""
    longer = (len(version), version) > (len(than), than)  # neither begins with a zero
    return _comparable(version) and _comparable(than) and longer
