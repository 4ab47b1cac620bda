"""Structural types of fields, and their merge rules.

A type is one of five. A *struct* has named fields; a *map* has arbitrary keys and one type of
value; a *list* has one type of element; a *scalar* is a string, a number or a boolean; an *untyped*
value has no schema (raw extensions, and kinds without a schema).

A type has the rules of two independent merge algorithms:

- server-side apply uses ``atomic`` and a list's ``kind``: an atomic value has one owner and is
  replaced as a whole; the elements of a ``set`` are identified by their value, those of a ``map``
  by their ``keys``;
- strategic merge patch uses a list's ``merge``: with a key, elements with the same key are merged;
  with an empty key, lists of scalars are united; without ``merge``, the list is replaced.

    ports of a container     ListType(kind="map", keys=("containerPort", "protocol"),
                                      merge=Merge("containerPort"))

Types may be recursive (the schema in a CustomResourceDefinition). So they compare by identity, and
code must recurse over a document, not over the type.

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
    ``int-or-string``, which accept two JSON types. ``format`` is OpenAPI's: ``int32``, ``int64``,
    ``double``, ``byte``, ``date-time`` or "", or in addition ``micro-time``.
    """

    type: str
    format: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Untyped:
    """Any JSON value: its maps are granular, its lists atomic."""


@dataclass(frozen=True, eq=False, slots=True)
class Merge:
    """The key by which strategic merge patch identifies list elements; "" is by value."""

    key: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class ListType:
    """A list. ``keys`` are those of the kind ``map``; ``defaults`` are values of absent keys."""

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
    """An object with known fields; ``name`` is the name of its definition.

    ``open``: other fields are allowed and are untyped. ``go``: it is a Go struct, some of whose
    fields exist even if they are not sent.
    """

    fields: Mapping[str, Field]
    atomic: bool = False
    name: str = ""
    open: bool = False
    go: bool = True


Type = Struct | MapType | ListType | Scalar | Untyped

UNTYPED: Final = Untyped()


class TypedNode(Protocol):
    """An object with a structural type: a kind."""

    @property
    def schema(self) -> Struct | Untyped:
        """The structural type of the whole document."""


def schema_of(kind: TypedNode) -> Struct | Untyped:
    """Return the structural type of a kind's documents; untyped without a schema."""
    return kind.schema


def child(parent: Type, step: str) -> Type:
    """Return the type of one key of an object; untyped if the type does not have it."""
    if isinstance(parent, Struct):
        member = parent.fields.get(step)
        return UNTYPED if member is None else member.type
    return parent.value if isinstance(parent, MapType) else UNTYPED
