"""Resource information: the server's data about each kind.

All differences between kinds are values of :class:`ResourceInfo`; the API has no branch on a kind's
name. Built-in kinds come from a table (:mod:`fakeapi.apiserver.kinds.builtin`). Kinds that a
CustomResourceDefinition declares are values of the same type, with the data of one version of the
definition in ``custom``.

Sources: for each kind, upstream's ``pkg/registry/GROUP/RESOURCE/strategy.go`` (what a create or an
update keeps, generations, selectable fields) and the ``patchMergeKey`` tags of ``k8s.io/api``;
k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from fakeapi.apiserver.kinds.structural_types import UNTYPED, Struct, Untyped


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A Table column; ``path`` is a JSONPath, ``priority`` 1 is shown in wide output only."""

    name: str
    type: str
    path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The paths of a Scale's fields in a custom resource, as simple JSON paths (``.spec.size``)."""

    spec: str
    status: str
    selector: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class CustomResourceInfo:
    """One version of a custom resource; compared by identity, so the compiled schema can be cached.

    ``definition`` is the definition's name, ``schema`` the version's OpenAPI schema (empty: any
    object is valid), ``versions`` are all versions of the definition.
    ``conversion`` is the definition's ``spec.conversion``. ``terminating``: the definition is being
    deleted, so objects cannot be created.
    """

    definition: str
    schema: Mapping[str, Any]
    versions: tuple[str, ...]
    storage_version: str
    list_kind: str
    columns: tuple[PrinterColumn, ...]
    scale: ScalePaths | None
    conversion: Mapping[str, Any]
    terminating: bool


Path = tuple[str, ...]
"""Keys from the root of a document; list elements have no key of their own."""

NO_STATUS: Mapping[str, Any] = MappingProxyType({})

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
SUBRESOURCE_VERBS = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class SelectableField:
    """A field that field selectors may name, and the paths to its value.

    The first path with a value that is not empty applies; without any, the value is ``absent``.
    """

    label: str
    paths: tuple[Path, ...]
    absent: str = ""


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource of an object: its status, or a document of another kind.

    ``group``, ``version`` and ``kind`` identify its documents (``Scale``, ``Eviction``,
    ``Binding``, ``TokenRequest``, or the object's own kind).
    """

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...] = SUBRESOURCE_VERBS


NO_SUBRESOURCES: Mapping[str, Subresource] = MappingProxyType({})


def untyped() -> Untyped:
    """Return the structural type of a kind without a schema."""
    return UNTYPED


@dataclass(frozen=True, eq=False)
class ResourceInfo:
    """One kind that is served under one group and version.

    ``first_status`` replaces the client's status on create; ``None`` keeps it (nodes).
    ``first_spec_finalizers`` are added to ``spec.finalizers`` on create (namespaces).
    ``generations``: changes of the spec increment ``metadata.generation``.
    ``graceful``: objects run on a node and are deleted with a grace period (pods).
    ``definition`` is the schema's name in OpenAPI, ``structure`` builds the structural type.
    ``verbs`` are those of the resource itself; a kind that can only be created is never stored.
    ``returns_deleted``: a delete returns the object, not a Status.
    ``undeletable`` are the names of objects that must not be deleted, ``undeletable_why`` is the
    error text.
    ``dependents``: the default propagation of a delete; ``ignore``: objects have no dependents.
    ``create_on_update``: a PUT may create. ``unconditional_update``: it may omit resourceVersion.
    ``name_label`` is a label that always has the object's name (namespaces).
    ``deprecation`` is the warning of requests for the kind.
    ``deletion_finalizer`` and ``deletion_condition`` are added to an object that is being deleted,
    for the controller that cleans up after it (CustomResourceDefinitions).
    ``finalizing_phase`` is the ``status.phase`` of an object that waits for ``spec.finalizers``.
    ``custom`` is the content of the CustomResourceDefinition, None for built-in kinds.
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
    dependents: Literal["delete", "orphan", "ignore"] = "delete"
    create_on_update: bool = False
    unconditional_update: bool = True
    selectable: tuple[SelectableField, ...] = ()
    custom: CustomResourceInfo | None = None

    @cached_property
    def api_version(self) -> str:
        """``apiVersion`` as in documents: ``v1``, ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def schema(self) -> Struct | Untyped:
        """The structural type of the whole document."""
        return self.structure()

    @cached_property
    def list_kind(self) -> str:
        """The kind of the list document."""
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
        """The path of the group and version: ``/api/v1``, ``/apis/apps/v1``."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @cached_property
    def head(self) -> bytes:
        """The first bytes of every document of this kind: brace, kind, apiVersion and comma."""
        return f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'.encode()

    @cached_property
    def fields(self) -> tuple[SelectableField, ...]:
        """All selectable fields: name, namespace (if the kind is namespaced), then the kind's."""
        common = ("name", "namespace") if self.namespaced else ("name",)
        own = tuple(SelectableField(f"metadata.{n}", (("metadata", n),)) for n in common)
        return own + self.selectable


class ResourceRegistry:
    """The kinds that a server serves, indexed by path and by apiVersion and kind of documents."""

    def __init__(self, kinds: Iterable[ResourceInfo]) -> None:
        self.all = tuple(kinds)
        self._by_path = {(k.group, k.version, k.plural): k for k in self.all}
        self._by_document = {(k.api_version, k.kind): k for k in self.all}
        self.group_versions = tuple(dict.fromkeys((k.group, k.version) for k in self.all))

    def at(self, group: str, version: str, plural: str) -> ResourceInfo | None:
        """Return the kind served at a path, or None."""
        return self._by_path.get((group, version, plural))

    def of(self, api_version: str, kind: str) -> ResourceInfo | None:
        """Return the kind with an apiVersion and kind of documents, or None."""
        return self._by_document.get((api_version, kind))

    def in_group_version(self, group: str, version: str) -> tuple[ResourceInfo, ...]:
        """Return the kinds of one group and version, in the table's order."""
        return tuple(k for k in self.all if (k.group, k.version) == (group, version))
