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
from fakeapi.api.fieldvalidation import FieldCheck
from fakeapi.api.hooks import Reviewers
from fakeapi.api.managers import manager_of
from fakeapi.api.messages import Request, Response, User
from fakeapi.api.metadata import Sources, check_document
from fakeapi.api.outcalls import Outbox
from fakeapi.api.registry import Registry, Target
from fakeapi.api.rehearsing import Timeline
from fakeapi.api.renewals import Renewals
from fakeapi.api.tokens import IssuedTokens
from fakeapi.kinds import Kind, Kinds
from fakeapi.store import Document

Identify = Callable[[str], User | None]
"""Returns the user of a bearer token, or None."""


@dataclass(frozen=True, slots=True)
class Services:
    """The components of the server that handlers use; ``identify`` knows every valid token.

    ``pending_calls`` invokes webhooks and holds the results of steps that run once per request.
    ``heartbeats`` learns from writes.
    """

    store: Timeline
    kinds: Kinds
    sources: Sources
    authorizer: Authorizer
    tokens: IssuedTokens
    identify: Identify
    outbox: Outbox
    renewals: Renewals


@dataclass(frozen=True, slots=True)
class Call:
    """One request; ``user`` is the acting user, ``registry`` the real one or that of a dry run.

    ``webhook_dispatcher`` invokes the webhooks of the request; None if there are none. A resource
    with a handler of its own calls it from that handler, other resources from the registry.
    """

    target: Target
    request: Request
    registry: Registry
    services: Services
    user: User
    reviewers: Reviewers | None = None

    def admitted(self, kind: Kind, document: Document, old: Document | None = None) -> Document:
        """Return a document that is not stored, after its webhooks; raise StatusError."""
        if self.reviewers is None:
            return document
        return self.reviewers.pass_through(kind, document, old)

    @property
    def attributed(self) -> Registry:
        """Return the registry with the request's field manager; raise StatusError."""
        return self.registry.written_by(manager_of(self.request))


Handler = Callable[[Call], Response]


def read_admitted(call: Call, kind: Kind, accepted: tuple[str, ...] = ()) -> Document:
    """Decode a body as :func:`read_typed` does, and pass it through webhooks.

    The body is an object to be created that is not stored. Raise StatusError.
    """
    return call.admitted(kind, read_typed(call, kind, accepted))


def read_typed(call: Call, kind: Kind, accepted: tuple[str, ...] = ()) -> Document:
    """Decode a body that must be a document of ``kind``, and ensure that it has metadata.

    ``accepted`` are other versions that are decoded as this one. Raise StatusError (400, 422).
    """
    options = "UpdateOptions" if call.request.method == "PUT" else "CreateOptions"
    check = FieldCheck(call.request.query, options)
    body = read_object(call.request)
    if body.get("apiVersion") in accepted:
        body["apiVersion"] = kind.api_version
    document = check.decode_body(kind, body, call.request.body)
    check_document(kind, document)
    return document


def answer(status: int, document: Document) -> Response:
    """Return a response with one JSON document."""
    return Response(status, orjson.dumps(document) + b"\n")


def succeeded() -> Response:
    """Return a 201 with a Status of success."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }
    return answer(201, status)
