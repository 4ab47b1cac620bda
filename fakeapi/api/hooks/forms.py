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
from fakeapi.kinds import Kind, Kinds
from fakeapi.store import Document

Convert = Callable[[Kind, Kind, Document], Document]
"""A function that converts a custom resource: (wanted kind, kind, document) -> document."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """Converts objects between their versions; ``convert`` is for custom resources."""

    kinds: Kinds
    convert: Convert

    def others(self, kind: Kind) -> Sequence[Kind]:
        """Return the other kinds of the same stored objects, in the order of the registry."""
        return _others(self.kinds, kind)

    def shown(self, form: Kind, kind: Kind, document: Document | None) -> Document | None:
        """Return an object of ``kind`` converted to the kind ``target``, type fields first."""
        if document is None:
            return None
        header = _header(form)
        if form.custom is not None:
            given = {**_header(kind), **document}
            return given if form is kind else {**header, **self.convert(form, kind, given)}
        conversion = conversion_of(form)
        converted = document if conversion is None else conversion.show({**document, **header})
        return {**header, **converted, **header}

    def taken(self, form: Kind, kind: Kind, document: Document) -> Document:
        """Return an object of the kind ``source`` converted to ``kind``."""
        if form.custom is not None:
            return document if form is kind else self.convert(kind, form, document)
        conversion = conversion_of(form)
        converted = document if conversion is None else conversion.store(document)
        return {**converted, **_header(kind)}


def _header(kind: Kind) -> Document:
    return {"kind": kind.kind, "apiVersion": kind.api_version}


@lru_cache(maxsize=1_024)
def _others(kinds: Kinds, kind: Kind) -> Sequence[Kind]:
    if kind.custom is not None:
        return tuple(
            k for k in kinds.all if k is not kind and k.custom and k.resource == kind.resource
        )
    own = _stored(kinds, kind)
    return tuple(k for k in kinds.all if k is not kind and _stored(kinds, k) is own)


def _stored(kinds: Kinds, kind: Kind) -> Kind:
    conversion = conversion_of(kind)
    return (conversion.stored_kind(kinds) if conversion is not None else None) or kind
