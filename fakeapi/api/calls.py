"""The scope of a request: the request, its target, and the components that serve it.

Handlers of subresources and reviews are functions from a RequestScope to a response. Tables assign
them to methods and resources (:mod:`fakeapi.apiserver.registry.subresources`,
:mod:`fakeapi.apiserver.endpoints.access_reviews`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import orjson

from fakeapi.api.authorizing import Authorizer
from fakeapi.api.bodies import read_object
from fakeapi.api.fieldvalidation import FieldValidator
from fakeapi.api.hooks import WebhookDispatcher
from fakeapi.api.managers import field_manager_of
from fakeapi.api.messages import Request, Response, User
from fakeapi.api.metadata import IdAndTimeSources, check_document
from fakeapi.api.outcalls import PendingCalls
from fakeapi.api.registry import Registry, Target
from fakeapi.api.rehearsing import ReadOnlyHistory
from fakeapi.api.renewals import HeartbeatCache
from fakeapi.api.tokens import IssuedTokens
from fakeapi.kinds import ResourceInfo, ResourceRegistry
from fakeapi.store import Document

IdentifyToken = Callable[[str], User | None]
"""Returns the user of a bearer token, or None."""


@dataclass(frozen=True, slots=True)
class ServerComponents:
    """The components of the server that handlers use; ``identify`` knows every valid token.

    ``pending_calls`` invokes webhooks and holds the results of steps that run once per request.
    ``heartbeats`` learns from writes.
    """

    store: ReadOnlyHistory
    kinds: ResourceRegistry
    sources: IdAndTimeSources
    authorizer: Authorizer
    tokens: IssuedTokens
    identify: IdentifyToken
    pending_calls: PendingCalls
    heartbeats: HeartbeatCache


@dataclass(frozen=True, slots=True)
class RequestScope:
    """One request; ``user`` is the acting user, ``registry`` the real one or that of a dry run.

    ``webhook_dispatcher`` invokes the webhooks of the request; None if there are none. A resource
    with a handler of its own calls it from that handler, other resources from the registry.
    """

    target: Target
    request: Request
    registry: Registry
    services: ServerComponents
    user: User
    webhook_dispatcher: WebhookDispatcher | None = None

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
    options = "UpdateOptions" if scope.request.method == "PUT" else "CreateOptions"
    check = FieldValidator(scope.request.query, options)
    body = read_object(scope.request)
    if body.get("apiVersion") in accepted:
        body["apiVersion"] = kind.api_version
    document = check.decode_body(kind, body, scope.request.body)
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
