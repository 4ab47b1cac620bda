"""A call: a request, what it names, and what is there to carry it out.

Handlers of subresources and reviews are functions from a call to a response; which handler answers
which method of which resource is a table (:mod:`fakeapi.api.subresources`,
:mod:`fakeapi.api.reviews`).
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
"""Gives the user that a bearer token stands for, or None."""


@dataclass(frozen=True, slots=True)
class Services:
    """What handlers need beside the objects; ``identify`` knows every token there is.

    ``outbox``: through which webhooks are asked, and what is to happen once goes. ``renewals``
    learn from writes.
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
    """One request; ``user`` is who acts, ``registry`` the real one or a rehearsal.

    ``reviewers`` are the webhooks that it has to pass, None if there are none. Those of a resource
    that has a handler of its own are asked by that handler, those of others by the registry.
    """

    target: Target
    request: Request
    registry: Registry
    services: Services
    user: User
    reviewers: Reviewers | None = None

    def admitted(self, kind: Kind, document: Document, old: Document | None = None) -> Document:
        """Return a document that is stored nowhere as webhooks let it pass; raises StatusError."""
        if self.reviewers is None:
            return document
        return self.reviewers.pass_through(kind, document, old)

    @property
    def attributed(self) -> Registry:
        """The registry, with writes attributed to the field manager; raises StatusError."""
        return self.registry.written_by(manager_of(self.request))


Handler = Callable[[Call], Response]


def read_admitted(call: Call, kind: Kind, accepted: tuple[str, ...] = ()) -> Document:
    """Read a body as :func:`read_typed` does, and let webhooks see it.

    It is something to be created that is stored nowhere. Raises StatusError.
    """
    return call.admitted(kind, read_typed(call, kind, accepted))


def read_typed(call: Call, kind: Kind, accepted: tuple[str, ...] = ()) -> Document:
    """Read a body that must be a document of ``kind``, and see that it has metadata.

    ``accepted`` are other versions that are read as this one. Raises StatusError (400, 422).
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
    """201: what was asked for has been done, and there is no more to say."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }
    return answer(201, status)
