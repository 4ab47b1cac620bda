"""The scope of a request: its target, its field manager, and the components that serve it.

Handlers of subresources and reviews are functions from a RequestScope to a response. Tables assign
them to methods and resources (:mod:`fakeapi.apiserver.registry.subresources`,
:mod:`fakeapi.apiserver.endpoints.access_reviews`).

A URL names the target:

    /api/v1/pods                                 all pods
    /api/v1/namespaces/default/pods              the pods of one namespace
    /apis/apps/v1/namespaces/x/replicasets/web   one object
    /api/v1/namespaces/x/pods/web/status         its subresource
    /api/v1/namespaces/x                         a namespace (and /status its subresource)

The query names the field manager. An update without it uses the first part of the User-Agent, up to
the slash. An apply must name it.

Sources: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go, handlers/create.go
(managerOrUserAgent), k8s.io/apimachinery/pkg/apis/meta/v1/validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from fakeapi.apiserver.admission.webhooks import WebhookDispatcher
from fakeapi.apiserver.auth.authorization import Authorizer
from fakeapi.apiserver.auth.service_account_tokens import IssuedTokens
from fakeapi.apiserver.kinds import ResourceInfo, ResourceRegistry
from fakeapi.apiserver.objects.metadata import IdAndTimeSources, check_document
from fakeapi.apiserver.registry.generic_registry import Registry, Target
from fakeapi.apiserver.registry.heartbeats import HeartbeatCache
from fakeapi.apiserver.store.dry_run import ReadOnlyHistory
from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.validation.strict_fields import FieldValidator
from fakeapi.apiserver.webhooks.calls import PendingCalls
from fakeapi.apiserver.wire.errors import not_found
from fakeapi.apiserver.wire.http_messages import Request, Response, User
from fakeapi.apiserver.wire.request_bodies import read_object
from fakeapi.apiserver.wire.write_options import field_manager_of

IdentifyToken = Callable[[str], User | None]
"""Returns the user of a bearer token, or None."""

NodeProxyHandler = Callable[[str, str, Mapping[str, str]], Response | None]
"""Returns the answer of a node to a path and query; None if its kubelet is not simulated.

An answer with the status 0 means that the connection to the node's port is refused.
"""


@dataclass(frozen=True, slots=True)
class ServerComponents:
    """The components of the server that handlers use; ``identify`` knows every valid token.

    ``pending_calls`` invokes webhooks and holds the results of steps that run once per request.
    ``heartbeats`` learns from writes. ``ask_kubelet`` returns the answer of a node's kubelet, None
    if nothing listens at the node's port.
    """

    store: ReadOnlyHistory
    kinds: ResourceRegistry
    sources: IdAndTimeSources
    authorizer: Authorizer
    tokens: IssuedTokens
    identify: IdentifyToken
    pending_calls: PendingCalls
    heartbeats: HeartbeatCache
    ask_kubelet: NodeProxyHandler


@dataclass(frozen=True, slots=True)
class RequestScope:
    """One request; ``user`` is the acting user, ``registry`` the real one or that of a dry run.

    ``webhook_dispatcher`` invokes the webhooks of the request; None if there are none. A resource
    with a handler of its own calls it from that handler, other resources from the registry.
    ``warnings`` are found while the request is decoded, and precede those of the answer.
    """

    target: Target
    request: Request
    registry: Registry
    services: ServerComponents
    user: User
    webhook_dispatcher: WebhookDispatcher | None = None
    warnings: list[str] = field(default_factory=list)

    def admit(
        self, kind: ResourceInfo, document: Document, old: Document | None = None
    ) -> Document:
        """Return a document that is not stored, after its webhooks; raise StatusError."""
        if self.webhook_dispatcher is None:
            return document
        return self.webhook_dispatcher.admit_and_validate(kind, document, old)

    @property
    def registry_with_manager(self) -> Registry:
        """Return the registry with the request's field manager; raise StatusError."""
        return self.registry.with_field_manager(field_manager_of(self.request))


Handler = Callable[[RequestScope], Response]


def read_admitted(
    scope: RequestScope, kind: ResourceInfo, accepted: tuple[str, ...] = ()
) -> Document:
    """Decode a body as :func:`read_typed` does, and pass it through webhooks.

    The body is an object to be created that is not stored. Raise StatusError.
    """
    return scope.admit(kind, read_typed(scope, kind, accepted))


def read_typed(scope: RequestScope, kind: ResourceInfo, accepted: tuple[str, ...] = ()) -> Document:
    """Decode a body that must be a document of ``kind``, and ensure that it has metadata.

    ``accepted`` are other versions that are decoded as this one. Raise StatusError (400, 422).
    """
    check = FieldValidator(scope.request)
    body = read_object(scope.request, kind.kind)
    if body.get("apiVersion") in accepted:
        body["apiVersion"] = kind.api_version
    document = check.decode_body(kind, body)
    scope.warnings.extend(check.warnings)
    check_document(kind, document)
    return document


def json_response(status: int, document: Document) -> Response:
    """Return a response with one JSON document."""
    return Response(status, orjson.dumps(document) + b"\n")


def created_status() -> Response:
    """Return a 201 with a Status of success."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }
    return json_response(201, status)


_ITEM_DEPTH = 3


def group_version_path(path: str) -> tuple[str, str, tuple[str, ...]] | None:
    """Split a path into group, version and the remaining steps; return None for other paths."""
    match path.strip("/").split("/"):
        case ["api", version, *rest]:
            return "", version, tuple(rest)
        case ["apis", group, version, *rest]:
            return group, version, tuple(rest)
    return None


def find_target(
    kinds: ResourceRegistry, group: str, version: str, rest: Sequence[str]
) -> Target | None:
    """Return the target of the path below a group and version; None if there is none.

    Raise StatusError (404) for a subresource that a custom resource does not have.
    """
    namespace, below = _split_namespace(kinds, group, version, rest)
    plural, name, subresource = (*below, "", "", "")[:_ITEM_DEPTH]
    kind = kinds.at(group, version, plural)
    wrong_scope = kind is not None and bool(namespace) and not kind.namespaced
    nameless = kind is not None and kind.namespaced and bool(name) and not namespace
    unnamed = len(below) > _ITEM_DEPTH or "" in below
    if kind is None or wrong_scope or nameless or unnamed:
        return None
    if subresource and subresource not in kind.subresources:
        if kind.custom is not None:
            raise not_found(kind, name)
        return None
    return Target(kind, namespace, name, subresource)


def _split_namespace(
    kinds: ResourceRegistry, group: str, version: str, rest: Sequence[str]
) -> tuple[str, Sequence[str]]:
    """Split off the namespace; /namespaces/x/status is a subresource, not a collection in x."""
    match rest:
        case ("namespaces", namespace, plural, *_) if namespace:
            if group or kinds.at(group, version, plural) is not None:
                return namespace, rest[2:]
    return "", rest
