"""What is asked of webhooks: who wants to do what to which object.

Source: k8s.io/apiserver/pkg/admission/attributes.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fakeapi.api.messages import User
from fakeapi.kinds import Kind
from fakeapi.store import Document

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"

_OPTIONS: Final = {CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for; ``resource`` is the kind of its path, in the form that it names."""

    user: User
    resource: Kind
    namespace: str
    name: str
    subresource: str
    query: Mapping[str, str]

    @property
    def dry_run(self) -> bool:
        """Whether the query says that nothing is to be written."""
        return bool(self.query.get("dryRun"))

    def options(self, operation: str) -> Document:
        """Return the options of a create or an update, as the operation has them."""
        named = ("fieldManager", "fieldValidation")
        told: Document = {name: self.query[name] for name in named if self.query.get(name)}
        if self.dry_run:
            told["dryRun"] = ["All"]
        return options_document(operation, told)


@dataclass(frozen=True, slots=True)
class Attributes:
    """One admission: ``kind`` is that of the objects (a Scale's, say), as they are given.

    ``object`` and ``old`` are None where the operation has none.
    """

    asked: Asked
    operation: str
    kind: Kind
    name: str
    object: Document | None
    old: Document | None
    options: Document
    dry_run: bool

    @property
    def namespace(self) -> str:
        """The request's namespace; of a namespace itself its own name."""
        resource = self.asked.resource
        return self.name if is_namespace(resource) else self.asked.namespace


def is_namespace(resource: Kind) -> bool:
    """Return whether requests are about namespaces."""
    return resource.resource == "namespaces"


def options_document(operation: str, told: Mapping[str, Any]) -> Document:
    """Return options with the header that they bear in reviews."""
    return {"kind": _OPTIONS[operation], "apiVersion": "meta.k8s.io/v1", **told}
