"""Admission attributes: the user, the operation, and the objects of a request in each version.

A webhook whose rules name one version also receives requests for the others (``matchPolicy:
Equivalent``), with converted objects: an Event has two versions, and custom resources have one kind
for each version.

Sources: k8s.io/apiserver/pkg/admission/attributes.go, k8s.io/apimachinery/pkg/runtime/mapper.go
(EquivalentResourceRegistry).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from fakeapi.apiserver.kinds import ResourceInfo, ResourceRegistry
from fakeapi.apiserver.objects.version_conversion import conversion_of
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.http_messages import User

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"

_OPTIONS: Final = {CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions"}


@dataclass(frozen=True, slots=True)
class RequestedOperation:
    """The operation of a request; ``resource`` is the kind of its path, in the path's version."""

    user: User
    resource: ResourceInfo
    namespace: str
    name: str
    subresource: str
    query: Mapping[str, str]

    @property
    def dry_run(self) -> bool:
        """Whether the query asks for a dry run."""
        return bool(self.query.get("dryRun"))

    def options(self, operation: str) -> Document:
        """Return the CreateOptions or UpdateOptions of the request."""
        named = ("fieldManager", "fieldValidation")
        options: Document = {name: self.query[name] for name in named if self.query.get(name)}
        if self.dry_run:
            options["dryRun"] = ["All"]
        return options_document(operation, options)


@dataclass(frozen=True, slots=True)
class AdmissionAttributes:
    """The attributes of one admission; ``kind`` is the kind of the objects (for example Scale).

    ``object`` and ``old`` are None if the operation has none.
    """

    requested: RequestedOperation
    operation: str
    kind: ResourceInfo
    name: str
    object: Document | None
    old: Document | None
    options: Document
    dry_run: bool

    @property
    def namespace(self) -> str:
        """The namespace of the request; for a Namespace its own name."""
        resource = self.requested.resource
        return self.name if is_namespace(resource) else self.requested.namespace


def is_namespace(resource: ResourceInfo) -> bool:
    """Return whether a resource is ``namespaces``."""
    return resource.resource == "namespaces"


def options_document(operation: str, options: Mapping[str, Any]) -> Document:
    """Return options with the kind and apiVersion that they have in reviews."""
    return {"kind": _OPTIONS[operation], "apiVersion": "meta.k8s.io/v1", **options}


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
            source = {**_header(kind), **document}
            return source if target is kind else {**header, **self.convert(target, kind, source)}
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
