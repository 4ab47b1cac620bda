"""What goes into the API and what comes out of it, as plain values without sockets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TEXT = "text/plain; charset=utf-8"

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class User:
    """Who asks, as authentication found it; ``extra`` holds further values by lower-case key."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)


_NOTHING: Mapping[str, tuple[str, ...]] = MappingProxyType({})

ADMIN: Final = User("kubernetes-admin", groups=("system:masters", "system:authenticated"))
"""Who asks where nobody is asked for credentials."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; ``path`` is decoded, of a repeated query key the first value counts.

    ``impersonated`` is whom the user acts for, as the ``Impersonate-*`` headers say.
    ``if_none_match`` is the ETag of the copy that the client has.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=lambda: _NONE)
    body: bytes = b""
    content_type: str = ""
    accept: str = ""
    user: User = ADMIN
    impersonated: User | None = None
    if_none_match: str = ""
    user_agent: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """One complete HTTP answer; ``headers`` are those beside and instead of the usual ones.

    Each of the ``warnings`` becomes a ``Warning`` header.
    """

    status: int
    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=lambda: _NONE)
    warnings: tuple[str, ...] = ()


def parse_query(text: str) -> Mapping[str, str]:
    """Parse a query string; of a repeated key the first value counts, as Go's ``Get`` has it."""
    query: dict[str, str] = {}
    for key, value in parse_qsl(text, keep_blank_values=True):
        query.setdefault(key, value)
    return query
