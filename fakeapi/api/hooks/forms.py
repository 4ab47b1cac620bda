"""The versions of an object that webhooks may request: an Event of ``v1`` or ``events.k8s.io``.

A webhook whose rules name one version also receives requests for the others (``matchPolicy:
Equivalent``), with converted objects. Custom resources have one kind for each version.

Source: k8s.io/apimachinery/pkg/runtime/mapper.go (EquivalentResourceRegistry).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from fakeapi.api.conversions import conversion_of
from fakeapi.kinds import ResourceInfo, ResourceRegistry
from fakeapi.store import Document

Convert = Callable[[ResourceInfo, ResourceInfo, Document], Document]
"""A function that converts a custom resource: (wanted kind, kind, document) -> document."""


@dataclass(frozen=True, slots=True)
class VersionedObjects:
    """Converts objects between their versions; ``convert`` is for custom resources."""

    kinds: ResourceRegistry
    convert: Convert

    def equivalent_kinds(self, kind: ResourceInfo) -> Sequence[ResourceInfo]:
        """Return the other kinds of the same stored objects, in the order of the registry."""
        return _equivalent_kinds(self.kinds, kind)

    def to_version(
        self, target: ResourceInfo, kind: ResourceInfo, document: Document | None
    ) -> Document | None:
        """Return an object of ``kind`` converted to the kind ``target``, type fields first."""
        if document is None:
            return None
        header = _header(target)
        if target.custom is not None:
            given = {**_header(kind), **document}
            return given if target is kind else {**header, **self.convert(target, kind, given)}
        conversion = conversion_of(target)
        converted = document if conversion is None else conversion.to_served({**document, **header})
        return {**header, **converted, **header}

    def from_version(
        self, source: ResourceInfo, kind: ResourceInfo, document: Document
    ) -> Document:
        """Return an object of the kind ``source`` converted to ``kind``."""
        if source.custom is not None:
            return document if source is kind else self.convert(kind, source, document)
        conversion = conversion_of(source)
        converted = document if conversion is None else conversion.to_stored(document)
        return {**converted, **_header(kind)}


def _header(kind: ResourceInfo) -> Document:
    return {"kind": kind.kind, "apiVersion": kind.api_version}


@lru_cache(maxsize=1_024)
def _equivalent_kinds(kinds: ResourceRegistry, kind: ResourceInfo) -> Sequence[ResourceInfo]:
    if kind.custom is not None:
        return tuple(
            k for k in kinds.all if k is not kind and k.custom and k.resource == kind.resource
        )
    own = _stored(kinds, kind)
    return tuple(k for k in kinds.all if k is not kind and _stored(kinds, k) is own)


def _stored(kinds: ResourceRegistry, kind: ResourceInfo) -> ResourceInfo:
    conversion = conversion_of(kind)
    return (conversion.stored_kind(kinds) if conversion is not None else None) or kind
