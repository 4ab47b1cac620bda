"""Request bodies: which media types are read, and how bytes become documents.

Nesting is bounded: what cannot be encoded again (more than about 250 levels, integers beyond 64
bits) is refused here, so that nothing behind this edge can meet it.
"""

from __future__ import annotations

from typing import Any

import orjson

from fakeapi.api.errors import bad_request, unsupported_media_type
from fakeapi.api.messages import JSON, PROTOBUF, Request
from fakeapi.api.protobuf import read_protobuf
from fakeapi.api.yaml_bodies import YAML, read_yaml
from fakeapi.store import Document

_READABLE = (JSON, YAML, PROTOBUF)


def media_type(content_type: str) -> str:
    """Return the media type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def read_json(body: bytes) -> Any:
    """Parse a body as JSON; raises StatusError (400) if it is not, or if it nests too deeply."""
    try:
        value = orjson.loads(body)
        check_depth(value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as error:
        raise bad_request(f"couldn't parse the body as JSON: {error}") from None
    return value


def check_depth(value: Any) -> None:
    """Raise orjson.JSONEncodeError for what nests too deeply to be stored.

    What the server makes of it (managedFields, events) is some levels deeper.
    """
    orjson.dumps([[[[[[[[value]]]]]]]])


def read_object(request: Request) -> Document:
    """Parse a body that must be one object, in JSON, YAML or protobuf; no type stands for JSON.

    Raises StatusError (415 for other media types, 400 for a body that is not what it should be).
    """
    sent = media_type(request.content_type)
    if sent == PROTOBUF:
        return read_protobuf(request.body)
    if sent not in ("", JSON, YAML):
        raise unsupported_media_type(_READABLE)
    value = read_yaml(request.body) if sent == YAML else read_json(request.body)
    if not isinstance(value, dict):
        raise bad_request("the body must be one JSON object")
    return value
