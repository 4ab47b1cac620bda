"""What every object has: its metadata, as controllers read it, whatever its kind.

A controller that deletes or labels objects of any kind needs no more of them than this. Decoding is
partial and cheap (a few microseconds), and never fails on an object that an API server stores: of
metadata whose shape is broken as much of the identity is kept as can be read.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, field


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
        """Whether the object has been told to go."""
        return self.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object, if there is one."""
        return next((owner for owner in self.owner_references or () if owner.controller), None)


class PartialObject(Struct):
    """An object of any kind, with nothing but its metadata."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class _Identity(Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identified(Struct):
    metadata: _Identity = field(default_factory=_Identity)


_partial = msgspec.json.Decoder(PartialObject)
_identified = msgspec.json.Decoder(_Identified)


def decode_partial(raw: msgspec.Raw | bytes) -> PartialObject:
    """Read an object's metadata, or its identity alone if the rest has an unknown shape."""
    try:
        return _partial.decode(raw)
    except msgspec.ValidationError:
        meta = _identified.decode(raw).metadata
        return PartialObject(ObjectMeta(meta.name, meta.namespace, meta.uid, meta.resource_version))
