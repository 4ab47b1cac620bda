"""Request bodies: accepted media types, and the decoding of JSON and YAML into documents.

Nesting is bounded. A document that cannot be encoded again (more than about 250 levels, integers
beyond 64 bits) is rejected here, so later stages never meet one. Characters that are no Unicode
become U+FFFD, as in Go.
"""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

from fakeapi.apiserver.store.object_store import Document
from fakeapi.apiserver.wire.errors import bad_request, unsupported_media_type
from fakeapi.apiserver.wire.go_format import json_type
from fakeapi.apiserver.wire.http_messages import JSON, PROTOBUF, Request
from fakeapi.apiserver.wire.json_syntax import json_syntax_error
from fakeapi.apiserver.wire.protobuf import read_protobuf
from fakeapi.apiserver.wire.yaml_decoder import YamlError, decode_yaml

YAML: Final = "application/yaml"

_MAX_EXCERPT: Final = 30
_TYPE_META: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)


_READABLE = (JSON, YAML, PROTOBUF)


def media_type(content_type: str) -> str:
    """Return the media type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def read_json(body: bytes) -> Any:
    """Decode a body as JSON; raise StatusError (400) if it is invalid or nested too deeply."""
    value, wrong = _read_json(body)
    if wrong:
        raise bad_request(wrong)
    return value


def check_depth(value: Any) -> None:
    """Raise orjson.JSONEncodeError for a value that is nested too deeply to be stored.

    Documents that the server derives from it (managedFields, events) are some levels deeper.
    """
    orjson.dumps([[[[[[[[value]]]]]]]])


def read_object(request: Request, kind: str = "") -> Document:
    """Decode a body of one object in JSON, YAML or protobuf; the default type is JSON.

    ``kind`` is the kind that the object must have, for errors. Raise StatusError: 415 for another
    media type, 400 for an invalid body.
    """
    sent = media_type(request.content_type)
    if sent == PROTOBUF:
        return _read_protobuf(request.body)
    if sent not in ("", JSON, YAML):
        raise unsupported_media_type(_READABLE)
    value, wrong = _read_yaml(request.body) if sent == YAML else _read_json(request.body)
    value = {} if value is None else value
    if not wrong and (wrong := _type_meta_error(value)):
        wrong = f"couldn't get version/kind; json parse error: {wrong}"
    if not wrong and isinstance(version := value.get("apiVersion"), str) and version.count("/") > 1:
        wrong = f"unexpected GroupVersion string: {version}"
    if not wrong:
        return value
    if kind:
        expected = f"the object provided is unrecognized (must be of type {kind})"
        wrong = f"{expected}: {wrong} ({summary(request.body)})"
    raise bad_request(wrong)


def _read_yaml(body: bytes) -> tuple[Any, str]:
    """Return the value of a body and "", or None and Go's words for its first error."""
    try:
        return decode_yaml(body).value, ""
    except YamlError as error:
        return None, str(error)


def _read_json(body: bytes) -> tuple[Any, str]:
    """Return the value of a body and "", or None and Go's words for its first error."""
    try:
        value = orjson.loads(body)
        check_depth(value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as error:
        wrong = json_syntax_error(body)
        if wrong:
            return None, f"couldn't get version/kind; json parse error: {wrong}"
        value = _replace_invalid_characters(body)
        return value, "" if value is not None else str(error)
    return value, ""


def _read_protobuf(body: bytes) -> Document:
    document = read_protobuf(body)
    try:
        check_depth(document)
    except orjson.JSONEncodeError as error:
        raise bad_request(f"the JSON in a protobuf message: {error}") from None
    return document


def _replace_invalid_characters(body: bytes) -> Any:
    """Return the value of a JSON text with U+FFFD for what is no Unicode; None if that fails."""
    try:
        value = json.loads(body.decode(errors="replace"))
        text = json.dumps(value, ensure_ascii=False)
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        value = orjson.loads(whole)
        check_depth(value)
    except (ValueError, RecursionError, orjson.JSONEncodeError):
        return None
    return value


def _type_meta_error(value: Any) -> str:
    """Return Go's words for a value that has no kind and version, or "" if it may have them."""
    if not isinstance(value, dict):
        return f"json: cannot unmarshal {json_type(value)} into Go value of type {_TYPE_META}"
    for name, found in value.items():
        if name in ("apiVersion", "kind") and not isinstance(found, str | None):
            field = f"Go struct field .{name} of type string"
            return f"json: cannot unmarshal {json_type(found)} into {field}"
    return ""


def summary(body: bytes) -> str:
    """Return the beginning of a body, in hexadecimal digits if it is no object."""
    if not body:
        return "<empty>"
    begin = body[:_MAX_EXCERPT]
    text = begin.decode(errors="replace") if body.startswith(b"{") else begin.hex()
    return f"{text} ..." if len(body) > _MAX_EXCERPT else text
