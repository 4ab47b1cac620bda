"""What goes into the API and what comes out of it, as plain values without sockets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import parse_qsl

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; ``path`` is decoded, of a repeated query key the first value counts."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=lambda: _NONE)
    body: bytes = b""
    content_type: str = ""
    accept: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """One complete HTTP answer."""

    status: int
    body: bytes
    content_type: str = JSON


def parse_query(text: str) -> Mapping[str, str]:
    """Parse a query string; of a repeated key the first value counts, as Go's ``Get`` has it."""
    query: dict[str, str] = {}
    for key, value in parse_qsl(text, keep_blank_values=True):
        query.setdefault(key, value)
    return query
