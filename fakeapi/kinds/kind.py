"""What the server must know about a kind, as data.

Everything that differs between kinds of object stands here as values; the API has no branch on a
kind's name. Built-in kinds come from a table (:mod:`fakeapi.kinds.builtin`); those that a
CustomResourceDefinition declares are further values of the same type, whose ``custom`` is set.

Sources: for each kind, upstream's ``pkg/registry/GROUP/RESOURCE/strategy.go`` (what a create or an
update keeps, generations, selectable fields) and the ``patchMergeKey`` tags of ``k8s.io/api``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from fakeapi.kinds.custom import Custom
from fakeapi.kinds.types import UNTYPED, Struct, Untyped

Path = tuple[str, ...]
"""Keys from the document's root down; lists are passed through without a step of their own."""

NO_STATUS: Mapping[str, Any] = MappingProxyType({})

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
SUBRESOURCE_VERBS = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class SelectableField:
    """A field that field selectors may name, and where its value stands.

    ``paths`` are tried in order and the first value that is not empty counts; an absent value reads
    as ``absent``.
    """

    label: str
    paths: tuple[Path, ...]
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Subresource:
    """Something below an object's path: its status, or a document of another kind.

    ``group``, ``version`` and ``kind`` name the documents it takes or gives (``Scale``,
    ``Eviction``, ``Binding``, ``TokenRequest``, the object's own kind).
    """

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...] = SUBRESOURCE_VERBS


NO_SUBRESOURCES: Mapping[str, Subresource] = MappingProxyType({})


def untyped() -> Untyped:
    """Return the structure of a kind that has no schema."""
    return UNTYPED


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of object served under one group and version.

    ``first_status`` replaces what a client sends as status on create; ``None`` keeps it (nodes).
    ``first_spec_finalizers`` are put into ``spec.finalizers`` on create (namespaces).
    ``generations`` tells whether ``metadata.generation`` counts changes of the spec.
    ``graceful`` objects run on a node and are given time to end (pods).
    ``definition`` is the schema's name in OpenAPI, ``structure`` builds the structural type.
    ``verbs`` are those of the resource itself; a kind that can only be created is never stored.
    ``returns_deleted``: a delete answers with the object itself, not with a Status.
    ``undeletable`` are the names of objects that may not be deleted, ``undeletable_why`` says so.
    ``path_names``: names may be whatever can stand in a path (roles), not DNS subdomains only.
    ``dependents``: what a delete that does not say does with them; ``ignore``: there are none.
    ``create_on_update``: a PUT may create. ``unconditional_update``: it may omit resourceVersion.
    ``name_label`` is a label that always holds the object's name (namespaces).
    ``deprecation`` warns whoever uses the kind.
    ``deletion_finalizer`` and ``deletion_condition`` are put into an object that is to be deleted,
    for whoever clears up behind it (definitions of custom resources).
    ``finalizing_phase`` is the ``status.phase`` of an object that waits for ``spec.finalizers``.
    ``custom`` is what its definition says, for a kind that is not built in.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS
    subresources: Mapping[str, Subresource] = field(default_factory=lambda: NO_SUBRESOURCES)
    definition: str = ""
    structure: Callable[[], Struct | Untyped] = untyped
    first_status: Mapping[str, Any] | None = field(default_factory=lambda: NO_STATUS)
    first_spec_finalizers: tuple[str, ...] = ()
    finalizing_phase: str = ""
    deletion_finalizer: str = ""
    deletion_condition: Mapping[str, str] = field(default_factory=lambda: NO_STATUS)
    name_label: str = ""
    deprecation: str = ""
    generations: bool = False
    graceful: bool = False
    returns_deleted: bool = False
    undeletable: tuple[str, ...] = ()
    undeletable_why: str = ""
    path_names: bool = False
    dependents: Literal["delete", "orphan", "ignore"] = "delete"
    create_on_update: bool = False
    unconditional_update: bool = True
    selectable: tuple[SelectableField, ...] = ()
    custom: Custom | None = None

    @cached_property
    def api_version(self) -> str:
        """``apiVersion`` as documents spell it: ``v1``, ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def schema(self) -> Struct | Untyped:
        """The structural type of the whole document."""
        return self.structure()

    @cached_property
    def list_kind(self) -> str:
        """Kind of the list document."""
        return self.custom.list_kind if self.custom else f"{self.kind}List"

    @cached_property
    def resource(self) -> str:
        """Group and plural in one name, as upstream's GroupResource prints it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def qualified_kind(self) -> str:
        """Kind and group in one name, as upstream's GroupKind prints it."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @cached_property
    def root(self) -> str:
        """Path of the group and version: ``/api/v1``, ``/apis/apps/v1``."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @cached_property
    def head(self) -> bytes:
        """First bytes of every document of this kind: the brace, kind and apiVersion, a comma."""
        return f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'.encode()

    @cached_property
    def fields(self) -> tuple[SelectableField, ...]:
        """All selectable fields; the name comes first, then, if there is one, the namespace."""
        common = ("name", "namespace") if self.namespaced else ("name",)
        own = tuple(SelectableField(f"metadata.{n}", (("metadata", n),)) for n in common)
        return own + self.selectable


class Kinds:
    """The kinds that a server serves, found by where they are served or by what documents say."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.all = tuple(kinds)
        self._by_path = {(k.group, k.version, k.plural): k for k in self.all}
        self._by_document = {(k.api_version, k.kind): k for k in self.all}
        self.group_versions = tuple(dict.fromkeys((k.group, k.version) for k in self.all))

    def at(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind served at a path, or None."""
        return self._by_path.get((group, version, plural))

    def of(self, api_version: str, kind: str) -> Kind | None:
        """Return the kind that a document names, or None."""
        return self._by_document.get((api_version, kind))

    def in_group_version(self, group: str, version: str) -> tuple[Kind, ...]:
        """Return the kinds of one group and version, in the table's order."""
        return tuple(k for k in self.all if (k.group, k.version) == (group, version))
