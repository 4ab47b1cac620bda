"""Structural types: what an object of a kind is made of, and how its parts merge.

A type is one of five things. A *struct* has named fields; a *map* has any keys and one type of
value; a *list* has one type of element; a *scalar* is a string, a number or a boolean; of an
*untyped* value nothing is known (raw extensions, and kinds without a schema).

Two ways of merging are written on them, and neither follows from the other:

- server-side apply goes by ``atomic`` and by a list's ``kind``: an atomic thing has one owner and
  is replaced as a whole; the elements of a ``set`` are told apart by their value, those of a
  ``map`` by their ``keys``;
- strategic merge patches go by a list's ``merge``: with a key, elements with the same key merge;
  with an empty key, a list of scalars is united; without a merge, the list is replaced.

    ports of a container     ListType(kind="map", keys=("containerPort", "protocol"),
                                      merge=Merge("containerPort"))

Types may contain themselves (the schema inside a CustomResourceDefinition), so they compare by
identity, and whoever walks them must follow a document, not the type.

Sources: k8s.io/kube-openapi (``x-kubernetes-list-type``, ``-list-map-keys``, ``-map-type``,
``-patch-strategy``, ``-patch-merge-key``), sigs.k8s.io/structured-merge-diff/schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol

NO_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, eq=False, slots=True)
class Scalar:
    """A leaf.

    ``type`` is ``string``, ``integer``, ``number``, ``boolean``, or one of ``quantity`` and
    ``int-or-string``, which take two JSON types. ``format`` is OpenAPI's: ``int32``, ``int64``,
    ``double``, ``byte``, ``date-time`` or ""; beside them ``micro-time``.
    """

    type: str
    format: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Untyped:
    """Any JSON at all: maps in it are granular, lists in it atomic."""


@dataclass(frozen=True, eq=False, slots=True)
class Merge:
    """How a strategic merge patch tells a list's elements apart; "" if by their value."""

    key: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class ListType:
    """A list. ``keys`` belong to the kind ``map``; ``defaults`` stand in for keys left out."""

    element: Type
    kind: Literal["atomic", "set", "map"] = "atomic"
    keys: tuple[str, ...] = ()
    merge: Merge | None = None
    defaults: Mapping[str, Any] = field(default_factory=lambda: NO_DEFAULTS)


@dataclass(frozen=True, eq=False, slots=True)
class MapType:
    """An object whose keys are data: labels, annotations, resources."""

    value: Type
    atomic: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Field:
    """One field of a struct.

    ``replaces``: a strategic merge patch replaces the field's map instead of merging into it.
    """

    type: Type
    required: bool = False
    replaces: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Struct:
    """An object with fields that are known; ``name`` is that of the definition it comes from.

    ``open``: it may have other fields, too, of which nothing is known. ``go``: it is a struct of
    Go's, some of whose fields are there without being sent.
    """

    fields: Mapping[str, Field]
    atomic: bool = False
    name: str = ""
    open: bool = False
    go: bool = True


Type = Struct | MapType | ListType | Scalar | Untyped

UNTYPED: Final = Untyped()


class Structured(Protocol):
    """Whatever knows its structural type: a kind."""

    @property
    def schema(self) -> Struct | Untyped:
        """The structural type of the whole document."""


def schema_of(kind: Structured) -> Struct | Untyped:
    """Return the structural type of a kind's documents; untyped if nothing is known about it."""
    return kind.schema


def type_at(root: Type, path: tuple[str, ...]) -> Type:
    """Return the type at a path of field names and map keys; lists are passed through.

    What lies below an untyped value, or is not in the type at all, is untyped.
    """
    found = root
    for step in path:
        found = child(element_of(found), step)
    return found


def element_of(found: Type) -> Type:
    """Return the type of a list's elements; anything else is its own element."""
    while isinstance(found, ListType):
        found = found.element
    return found


def child(parent: Type, step: str) -> Type:
    """Return the type below one key of an object; untyped if the type does not know it."""
    if isinstance(parent, Struct):
        known = parent.fields.get(step)
        return UNTYPED if known is None else known.type
    return parent.value if isinstance(parent, MapType) else UNTYPED
