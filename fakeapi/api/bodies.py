"""Request bodies: which media types are read, and how bytes become documents.

Nesting is bounded: what cannot be encoded again (more than about 250 levels, integers beyond 64
bits) is refused here, so that nothing behind this edge can meet it.
"""

from __future__ import annotations

from typing import Any

import orjson

from fakeapi.api.errors import bad_request, not_acceptable, unsupported_media_type
from fakeapi.api.messages import JSON, Request
from fakeapi.store import Document

_ACCEPTABLE = frozenset((JSON, "application/*", "*/*"))


def media_type(content_type: str) -> str:
    """Give the media type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def check_accept(accept: str) -> None:
    """Refuse (406) a client that takes anything but JSON."""
    offers = [media_type(offer) for offer in accept.split(",")]
    if accept and not _ACCEPTABLE.intersection(offers):
        raise not_acceptable((JSON,))


def read_json(body: bytes) -> Any:
    """Parse a body as JSON; raises StatusError (400) if it is not, or if it nests too deeply."""
    try:
        value = orjson.loads(body)
        orjson.dumps(value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as error:
        raise bad_request(f"couldn't parse the body as JSON: {error}") from None
    return value


def read_object(request: Request) -> Document:
    """Parse a body that must be one JSON object; an absent Content-Type stands for JSON.

    Raises StatusError (415 for other media types, 400 for other JSON).
    """
    if media_type(request.content_type) not in ("", JSON):
        raise unsupported_media_type((JSON,))
    value = read_json(request.body)
    if not isinstance(value, dict):
        raise bad_request("the body must be one JSON object")
    return value
