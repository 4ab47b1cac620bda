"""Protobuf bodies: upstream's own samples of every kind, and invalid bytes."""

from __future__ import annotations

import lzma
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.endpoints import Api
from fakeapi.apiserver.wire.errors import StatusError
from fakeapi.apiserver.wire.protobuf import read_protobuf
from tests.fakeapi.api_requests import MAPS, PROTOBUF, send

RECORDED: dict[str, Any] = orjson.loads(
    lzma.decompress((Path(__file__).parents[2] / "recorded" / "protobuf.json.xz").read_bytes())
)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", RECORDED)
def test_a_message_is_the_same_document_as_its_json(name: str) -> None:
    body = b64decode(RECORDED[name]["protobuf"])
    assert without_nulls(read_protobuf(body)) == without_nulls(RECORDED[name]["json"])


def field(key: bytes, content: bytes) -> bytes:
    length, rest = b"", len(content)
    while rest > 0x7F:
        length += bytes((rest & 0x7F | 0x80,))
        rest >>= 7
    return key + length + bytes((rest,)) + content


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    named = field(b"\x0a", api_version.encode()) + field(b"\x12", kind.encode())
    return b"k8s\0" + field(b"\x0a", named) + field(b"\x12", message)


def nested(depth: int, *keys: bytes) -> bytes:
    """Return messages inside each other, each level with the fields of all keys."""
    content = b""
    for _ in range(depth):
        for key in reversed(keys):
            content = field(key, content)
    return content


def definition(schema: bytes) -> bytes:
    """Return a CustomResourceDefinition whose only version has a schema."""
    message = schema
    for key in (b"\x0a", b"\x22", b"\x3a", b"\x12"):
        message = field(key, message)
    return envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", message)


NOT, ITEMS, FIRST = b"\xe2\x01", b"\xc2\x01", b"\x0a"

CONFIG_MAP = envelope("v1", "ConfigMap", bytes.fromhex("0a030a0161") + b"\x12\x06\n\x01k\x12\x01v")


def test_an_object_is_created_from_protobuf_and_answered_in_json(api: Api) -> None:
    answer = send(api, "POST", MAPS, CONFIG_MAP, PROTOBUF)
    made = orjson.loads(answer.body)
    assert (answer.status, made["metadata"]["name"], made["data"]) == (201, "a", {"k": "v"})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"xx", "does not appear to be a protobuf message, expected prefix [107 56 115 0] (7878)"),
        (b"k8s\0", "the object provided is unrecognized: empty body (6b387300)"),
        (b"k8s\0\x0a\xff", "the object provided is unrecognized: unexpected EOF (6b3873000aff)"),
        (
            envelope("v1", "ConfigMap", b"\x0a\x7f"),
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF',
        ),
        (envelope("v1", "ConfigMap", b"\x0f"), "illegal wireType 7"),
        (envelope("v1", "ConfigMap", b"\x0a\x03\x0a\x01\xff"), "invalid UTF-8"),
        (envelope("v1", "ConfigMap", b"\x0a" + b"\xff" * 10), "integer overflow"),
        (envelope("v1", "ConfigMap", b"\x08\x01"), "wrong wireType"),
        (envelope("v1", "ConfigMap", b"\x0a\x09\x09" + bytes(8)), "wrong wireType"),
        (envelope("v1", "ConfigMap", b"\x0a" + b"\xff" * 9 + b"\x01"), "negative length"),
        (definition(b"\xc2\x01\x02\x08\x01"), "wrong wireType"),
        (definition(b"\x4a\x08" + bytes(8)), "wrong wireType for a double"),
        (definition(b"\x49\0\0\0\0\0\0\xf8\x7f"), "json: unsupported value: nan"),
        (definition(nested(10_000, NOT)), "exceeded max depth of 100"),
        (definition(nested(10_000, ITEMS, FIRST)), "exceeded max depth of 100"),
        (envelope("v1", "Nothing", b""), 'no kind "Nothing" is registered for version "v1"'),
    ],
)
def test_invalid_messages_are_refused(body: bytes, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        read_protobuf(body)
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")
    assert message in refused.value.message


def test_json_that_is_nested_too_deeply_in_a_message_is_refused(api: Api) -> None:
    raw = b"[" * 500 + b"]" * 500
    body = envelope("apps/v1", "ControllerRevision", field(b"\x12", field(b"\x0a", raw)))
    path = "/apis/apps/v1/namespaces/default/controllerrevisions"
    answer = send(api, "POST", path, body, PROTOBUF)
    assert (answer.status, orjson.loads(answer.body)["reason"]) == (400, "BadRequest")


def test_unknown_fields_are_skipped() -> None:
    later = b"\xfa\x3e\x01x" + b"\xf8\x3e\x01" + b"\xf9\x3e" + bytes(8) + b"\xfd\x3e" + bytes(4)
    assert read_protobuf(envelope("v1", "ConfigMap", later)) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
    }


@given(st.sampled_from(sorted(RECORDED)), st.data())
def test_damaged_messages_are_read_or_refused(name: str, data: st.DataObject) -> None:
    body = bytearray(b64decode(RECORDED[name]["protobuf"]))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(4, len(body)))
    with suppress(StatusError):
        orjson.dumps(read_protobuf(bytes(body[:end])))
