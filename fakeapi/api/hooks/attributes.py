"""Admission attributes: the user, the operation, and the objects of a request.

Source: k8s.io/apiserver/pkg/admission/attributes.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakeapi.api.messages import User
from fakeapi.kinds import ResourceInfo
from fakeapi.store import Document

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
        told: Document = {name: self.query[name] for name in named if self.query.get(name)}
        if self.dry_run:
            told["dryRun"] = ["All"]
        return options_document(operation, told)


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
