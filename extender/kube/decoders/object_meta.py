"""metav1.ObjectMeta as controllers read it, of objects of any kind; and metav1.Time.

A controller that deletes or labels objects of any kind decodes only their metadata. Decoding is
partial and cheap (a few microseconds), and never fails on an object that an API server stores: of
malformed metadata, as much of the identity is kept as can be decoded.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct, field

NS_PER_SECOND: Final = 10**9

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class OwnerReference(Struct, frozen=True, rename="camel", omit_defaults=True):
    """metav1.OwnerReference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct, rename="camel"):
    """metav1.ObjectMeta; times as they are written (RFC 3339)."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def deleting(self) -> bool:
        """Whether the object is being deleted."""
        return self.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The managing controller of the object, if there is one."""
        return next((owner for owner in self.owner_references or () if owner.controller), None)


class PartialObject(Struct):
    """An object of any kind, with its metadata only."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class _ObjectIdentity(Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _IdentifiedObject(Struct):
    metadata: _ObjectIdentity = field(default_factory=_ObjectIdentity)


_partial = msgspec.json.Decoder(PartialObject)
_identified = msgspec.json.Decoder(_IdentifiedObject)


def decode_partial(raw: msgspec.Raw | bytes) -> PartialObject:
    """Decode an object's metadata, or its identity alone if the rest is malformed."""
    try:
        return _partial.decode(raw)
    except msgspec.ValidationError:
        meta = _identified.decode(raw).metadata
        return PartialObject(ObjectMeta(meta.name, meta.namespace, meta.uid, meta.resource_version))


def format_time(epoch_ns: int) -> str:
    """Format a time as metav1.Time, in whole seconds."""
    return _format_seconds(epoch_ns // 10**9)


@lru_cache(maxsize=64)
def _format_seconds(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


@lru_cache(maxsize=8192)
def parse_time(timestamp: str | None) -> int:
    """Parse an RFC 3339 timestamp to nanoseconds since the epoch; 0 if absent or malformed."""
    if not timestamp:
        return 0
    try:
        found = datetime.fromisoformat(timestamp)
    except ValueError:
        return 0
    if found.tzinfo is None:
        return 0
    return (found - _EPOCH) // _MICROSECOND * 1000
