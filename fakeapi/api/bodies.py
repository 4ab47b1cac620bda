"""Request bodies: accepted media types, and the decoding of bytes into documents.

Nesting is bounded. A document that cannot be encoded again (more than about 250 levels, integers
beyond 64 bits) is rejected here, so later stages never meet one.
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
    """Decode a body as JSON; raise StatusError (400) if it is invalid or nested too deeply."""
    try:
        value = orjson.loads(body)
        check_depth(value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as error:
        raise bad_request(f"couldn't parse the body as JSON: {error}") from None
    return value


def check_depth(value: Any) -> None:
    """Raise orjson.JSONEncodeError for a value that is nested too deeply to be stored.

    Documents that the server derives from it (managedFields, events) are some levels deeper.
    """
    orjson.dumps([[[[[[[[value]]]]]]]])


def read_object(request: Request) -> Document:
    """Decode a body of one object in JSON, YAML or protobuf; the default type is JSON.

    Raise StatusError: 415 for another media type, 400 for an invalid body.
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
