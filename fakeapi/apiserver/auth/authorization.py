"""Authorization: which user may do what.

An :class:`Authorizer` decides on :class:`AuthorizationAttributes`. These are read from the method
and path of a request alone, before the resource is looked up. By default everything is allowed;
:mod:`fakeapi.apiserver.auth.rbac` decides by the roles in the store.

Sources: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go, handlers/responsewriters/errors.go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.apiserver.wire.http_messages import Request, User

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES: Final = ("status", "finalize")
_NAME_SELECTOR: Final = re.compile(r"metadata\.name==?([^,]+)")
_MARKUP: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class AuthorizationAttributes:
    """A user and the requested operation; ``path`` is set for non-resource requests."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class ResourceRules:
    """The permissions of a user in a namespace, as SelfSubjectRulesReview lists them."""

    resources: Sequence[dict[str, Any]] = field(default_factory=tuple)
    paths: Sequence[dict[str, Any]] = field(default_factory=tuple)


class Authorizer(Protocol):
    """Decides whether a user may perform an operation."""

    def reason(self, attributes: AuthorizationAttributes) -> str | None:
        """Return why the operation is allowed (may be ""), or None if it is not."""
        ...

    def rules(self, user: User, namespace: str) -> ResourceRules:
        """Return the permissions of a user in a namespace."""
        ...


class AlwaysAllow:
    """Allows every operation."""

    def reason(self, attributes: AuthorizationAttributes) -> str | None:  # noqa: ARG002
        """Return "": every operation is allowed."""
        return ""

    def rules(self, user: User, namespace: str) -> ResourceRules:  # noqa: ARG002
        """Return a rule that allows everything."""
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        return ResourceRules([everything], [{"verbs": ["*"], "nonResourceURLs": ["*"]}])


def authorization_attributes(request: Request, user: User) -> AuthorizationAttributes:
    """Return the authorization attributes of a request."""
    verb = _VERBS.get(request.method, "get")
    match request.path.strip("/").split("/"):
        case ["api", version, first, *rest]:
            return _resource_attributes(request, user, verb, ("", version, first, *rest))
        case ["apis", group, version, first, *rest]:
            return _resource_attributes(request, user, verb, (group, version, first, *rest))
    return AuthorizationAttributes(user, request.method.lower(), path=request.path)


def forbidden_request(attributes: AuthorizationAttributes) -> StatusError:
    """Return a 403 Forbidden: the user may not perform the operation."""
    what = forbidden_message(attributes)
    if attributes.path:
        return StatusError(403, "Forbidden", f"forbidden: {what}", {})
    group, resource, name = attributes.group, attributes.resource, attributes.name
    qualified = f"{resource}.{group}" if group else resource
    details = {"name": name, "group": group, "kind": resource}
    message = f'{qualified} "{name}" is forbidden: {what}' if name else ""
    return StatusError(403, "Forbidden", message or f"{qualified} is forbidden: {what}", details)


def forbidden_message(attributes: AuthorizationAttributes) -> str:
    """Return upstream's message for an operation that is not allowed."""
    head = f'User "{attributes.user.name}" cannot {attributes.verb}'
    if attributes.path:
        return f'{head} path "{attributes.path}"'.translate(_MARKUP)
    resource = "/".join(filter(None, (attributes.resource, attributes.subresource)))
    namespace = attributes.namespace
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    text = f'{head} resource "{resource}" in API group "{attributes.group}" {where}'
    return text.translate(_MARKUP)


def _resource_attributes(
    request: Request, user: User, verb: str, parts: tuple[str, ...]
) -> AuthorizationAttributes:
    group, version, *below = parts
    namespace = ""
    if below[0] == "namespaces" and len(below) > 1:
        namespace = below[1]
        if len(below) > 2 and below[2] not in _NAMESPACE_SUBRESOURCES:
            below = below[2:]
    resource, name, subresource = (*below, "", "")[:3]
    if not name:
        verb, name = _collection_verb(request, verb)
    return AuthorizationAttributes(
        user, verb, group, version, resource, subresource, namespace, name
    )


def _collection_verb(request: Request, verb: str) -> tuple[str, str]:
    """Return the verb, and the name if a field selector selects a single object."""
    if verb not in ("get", "delete"):
        return verb, ""
    watching = request.query.get("watch", "").lower() not in ("", "0", "false")
    selected = _NAME_SELECTOR.fullmatch(request.query.get("fieldSelector", ""))
    name = selected[1] if selected else ""
    if verb == "delete":
        return "deletecollection", name
    return ("watch" if watching else "list"), name
