"""Whether a controller's copies show what it has written itself.

A controller acts on copies that lag behind the server. After its own writes it should not look
before the copies have come that far, or it does what it has already done. Guarantees:

- Of each owner (and each resource that is written on its behalf) the newest version written is
  remembered, whatever the order in which the answers came.
- An owner made anew under its old name has written nothing yet.
- Once the copies have caught up, what was remembered is dropped: asking costs nothing then.
- What cannot be compared holds nobody up: a copy that was never filled, a version that is no
  decimal number without leading zeros.

A write that is not remembered (its answer was lost) is not waited for: this spares work, and does
not replace expectations (what was asked for and has not been seen).

Source: kubernetes/pkg/controller/util/consistency (consistency_store.go) as of 1.36, and
k8s.io/apimachinery/pkg/util/resourceversion. Newer upstream waits for a copy that was never filled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from extender.kube.resources import Resource

_COMPARABLE: Final = re.compile(r"[1-9][0-9]*", re.ASCII)


class Copy(Protocol):
    """What keeps a copy: an informer."""

    @property
    def resource_version(self) -> str:
        """The version that the copy has reached, "" before the first list."""
        ...


@dataclass(frozen=True, slots=True)
class Stale:
    """A copy that does not show yet what was written."""

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
    """What was written for each owner, held against ``copies``.

    Owners go by ``namespace/name``. Only resources that there is a copy of are to be written down.
    """

    def __init__(self, copies: Mapping[Resource, Copy]) -> None:
        self._copies = copies
        self._records: dict[str, _Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def wrote(self, owner: str, uid: str, resource: Resource, version: str) -> None:
        """Remember that a write for an owner with this UID gave an object this version."""
        record = self._records.get(owner)
        if record is None or record.uid != uid:
            record = self._records[owner] = _Record(uid)
        before = record.versions.get(resource)
        if _comparable(version) if before is None else _newer(version, before):
            record.versions[resource] = version

    def stale(self, owner: str) -> Stale | None:
        """Return a copy that is behind what was written for an owner; None if all have caught up."""
        record = self._records.get(owner)
        for resource, written in (record.versions if record else {}).items():
            read = self._copies[resource].resource_version
            if _newer(written, read):
                return Stale(resource, read, written)
        self._records.pop(owner, None)
        return None

    def clear(self, owner: str, uid: str = "") -> None:
        """Forget an owner, if it is the one with this UID ("": whichever it is)."""
        record = self._records.get(owner)
        if record is not None and uid in ("", record.uid):
            del self._records[owner]


def _comparable(version: str) -> bool:
    return _COMPARABLE.fullmatch(version) is not None


def _newer(version: str, than: str) -> bool:
    """Return whether a version is newer than another; False if they cannot be compared."""
    return _comparable(version) and _comparable(than) and int(version) > int(than)
