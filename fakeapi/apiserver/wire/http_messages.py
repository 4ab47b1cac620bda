"""Requests and responses of the API, as plain values without sockets.

Discovery and OpenAPI documents are large and rarely change, so clients cache them: each response
has the hash of its bytes as its ETag, and a client that sends the hash back (``If-None-Match``)
gets 304 and no body.

Source: k8s.io/apiserver/pkg/endpoints/discovery/aggregated/etag.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TEXT = "text/plain; charset=utf-8"

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated user; ``extra`` holds further values by lower-case key."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)


_NOTHING: Mapping[str, tuple[str, ...]] = MappingProxyType({})

ADMIN_USER: Final = User("kubernetes-admin", groups=("system:masters", "system:authenticated"))
"""The user of requests where no credentials are required."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; ``path`` is decoded, and of a repeated query key the first value counts.

    ``impersonated`` is the user of the ``Impersonate-*`` headers. ``if_none_match`` is the ETag of
    the response that the client has cached.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=lambda: _NONE)
    body: bytes = b""
    content_type: str = ""
    accept: str = ""
    user: User = ADMIN_USER
    impersonated: User | None = None
    if_none_match: str = ""
    user_agent: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """One complete HTTP response; ``headers`` are added to, or replace, the usual ones.

    Each of the ``warnings`` becomes a ``Warning`` header. ``rest`` is the rest of the body of a
    large list, in pieces that are encoded as they are sent.
    """

    status: int
    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=lambda: _NONE)
    warnings: tuple[str, ...] = ()
    rest: Iterable[bytes] = ()

    @property
    def joined(self) -> Response:
        """The same response with the rest in its body."""
        return replace(self, body=b"".join((self.body, *self.rest)), rest=()) if self.rest else self


def parse_query(text: str) -> Mapping[str, str]:
    """Parse a query string; of a repeated key the first value counts, as in Go's ``Get``."""
    query: dict[str, str] = {}
    for key, value in parse_qsl(text, keep_blank_values=True):
        query.setdefault(key, value)
    return query


_NOT_MODIFIED: Final = 304


def etag_of(body: bytes) -> str:
    """Return the ETag of a response's bytes, in quotes."""
    return f'"{hashlib.sha512(body).hexdigest().upper()}"'


def conditional_response(
    request: Request, body: bytes, content_type: str, etag: str = "", **headers: str
) -> Response:
    """Return the response, or 304 if the client has it already.

    ``etag`` avoids hashing the body again; ``headers`` are added to both responses.
    """
    tagged: Mapping[str, str] = {
        "ETag": etag or etag_of(body),
        "Vary": "Accept",
        "Cache-Control": "public",
        **headers,
    }
    if request.if_none_match == tagged["ETag"]:
        return Response(_NOT_MODIFIED, b"", content_type, headers=tagged)
    return Response(200, body, content_type, headers=tagged)
