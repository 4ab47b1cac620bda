"""The forms of one object that webhooks may ask for: an event of ``v1`` or of ``events.k8s.io``.

A webhook whose rules name one form sees requests for the other as well (``matchPolicy:
Equivalent``), with the objects converted. Custom resources have a form for each version.

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
"""Gives, in the wanted version, a custom resource of the given one."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """The forms that objects can take; ``convert`` is for custom resources."""

    kinds: Kinds
    convert: Convert

    def others(self, kind: Kind) -> Sequence[Kind]:
        """Return the other kinds whose objects are the same ones, in the order of the table."""
        return _others(self.kinds, kind)

    def shown(self, form: Kind, kind: Kind, document: Document | None) -> Document | None:
        """Return an object of ``kind`` as it is stored in another form, header first."""
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
        """Return an object that is in another form as one of ``kind``."""
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
