"""Protobuf answers: every kind, generated objects, and values without a message of their own."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakeapi.apiserver.kinds import BUILTIN
from fakeapi.apiserver.kinds.protobuf_fields import SCHEMA, ProtobufField, message, message_of
from fakeapi.apiserver.wire.protobuf import read_protobuf
from fakeapi.apiserver.wire.protobuf_encoder import (
    EncodedObjects,
    encode_frame,
    encode_protobuf,
    message_encoder,
)
from tests.fakeapi.apiserver.wire.test_protobuf import RECORDED, without_nulls
from tests.fakeapi.protobuf_frames import read_frames


def encoded(document: Mapping[str, Any]) -> bytes:
    body = encode_protobuf(orjson.dumps(document))
    assert body is not None
    return body


def without_item_kinds(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document whose items have no kind, as in protobuf."""
    types = ("kind", "apiVersion")
    if not document["kind"].startswith("PartialObjectMetadataList"):
        return document
    items = [{k: v for k, v in item.items() if k not in types} for item in document["items"]]
    return {**document, "items": items}


@pytest.mark.parametrize("name", RECORDED)
def test_a_document_is_the_same_after_encoding_and_decoding(name: str) -> None:
    document = RECORDED[name]["json"]
    expected = without_item_kinds(without_nulls(document))
    assert without_nulls(read_protobuf(encoded(document))) == expected


def test_every_built_in_kind_has_a_message_and_a_sample() -> None:
    for kind in BUILTIN.all:
        assert message_of(kind.api_version, kind.kind) is not None, kind.kind
        if "list" in kind.verbs:
            assert message_of(kind.api_version, kind.list_kind) is not None, kind.list_kind
        assert f"{kind.group or 'core'}.{kind.version}.{kind.kind}" in RECORDED
        for below in kind.subresources.values():
            api_version = "/".join(filter(None, (below.group, below.version)))
            assert message_of(api_version, below.kind) is not None, below.kind


def test_the_envelope_has_the_kind_and_upstreams_empty_fields() -> None:
    body = encoded({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}})
    kind = b"\x0a\x02v1\x12\x09ConfigMap"
    assert body == b"k8s\0\x0a\x0f" + kind + b"\x12\x05\x0a\x03\x0a\x01a" + b"\x1a\0\x22\0"


def test_maps_are_written_in_the_order_of_their_keys() -> None:
    body = encoded({"kind": "ConfigMap", "apiVersion": "v1", "data": {"b": "2", "a": "1"}})
    assert body.index(b"\x0a\x01a\x12\x011") < body.index(b"\x0a\x01b\x12\x012")


@pytest.mark.parametrize("kind", ["Nothing", "NothingList"])
def test_an_unknown_kind_has_no_encoding(kind: str) -> None:
    document = {"kind": kind, "apiVersion": "example.com/v1", "metadata": {}, "items": []}
    assert encode_protobuf(orjson.dumps(document)) is None


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05+01:00", "2026-01-02T02:04:05Z"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"),
        ("2026-19-39T03:04:05Z", None),
    ],
)
def test_times_are_seconds_and_a_day_that_does_not_exist_is_none(
    value: str, read: str | None
) -> None:
    document = {"kind": "Pod", "apiVersion": "v1", "status": {"startTime": value}}
    assert read_protobuf(encoded(document))["status"].get("startTime") == read


@pytest.mark.parametrize("value", [None, [], {}])
def test_empty_values_are_read_as_missing(value: Any) -> None:
    document = {"kind": "ConfigMap", "apiVersion": "v1", "binaryData": value}
    assert read_protobuf(encoded(document)) == {"kind": "ConfigMap", "apiVersion": "v1"}


def test_encoded_objects_are_bounded_and_equal_to_new_ones() -> None:
    remembered, encode = EncodedObjects(100), message_encoder("core/v1.ConfigMap")
    for index in range(50):
        document = {"metadata": {"name": f"map-{index % 20}"}}
        assert remembered.encode("core/v1.ConfigMap", orjson.dumps(document)) == encode(document)


def test_a_frame_has_its_length_the_type_and_the_object() -> None:
    line = b'{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{}}}\n'
    frame = encode_frame(line)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    added = ("ADDED", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}})
    assert read_frames(frame * 2) == [added, added]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
INTEGER = st.integers(-(2**63), 2**63 - 1)
JSON_VALUE = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
SECONDS = st.datetimes().map(lambda time: f"{time:%Y-%m-%dT%H:%M:%S}Z".rjust(20, "0"))
MICROSECONDS = st.datetimes().map(lambda time: f"{time:%Y-%m-%dT%H:%M:%S.%f}Z".rjust(27, "0"))
NUMBER = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: not number.is_integer()
)
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "s": TEXT,
    "i": INTEGER,
    "o": st.booleans(),
    "d": NUMBER,
    "b": st.binary(max_size=5).map(lambda content: b64encode(content).decode()),
    "time": SECONDS,
    "microtime": MICROSECONDS,
    "duration": st.sampled_from(["0s", "1.5s", "1m0s", "-2h3m4.000000005s"]),
    "quantity": st.sampled_from(["0", "1", "500m", "1Gi"]),
    "int-or-string": TEXT | INTEGER,
    "raw": JSON_VALUE,
    "items": st.lists(TEXT, min_size=1, max_size=2),
}
UNIONS: Mapping[str, Callable[[st.SearchStrategy[Any]], st.SearchStrategy[Any]]] = {
    "schema-or-bool": lambda schema: schema | st.booleans(),
    "schema-or-list": lambda schema: schema | st.lists(schema, min_size=1, max_size=2),
    "schema-or-names": lambda schema: schema | st.lists(TEXT, min_size=1, max_size=2),
}


@st.composite
def messages(draw: st.DrawFn, name: str, depth: int) -> dict[str, Any]:
    """Build a document of a message with a few of its fields; deeper ones have fewer."""
    fields = list(message(name).values())
    if not fields or not depth:
        return {}
    chosen = draw(st.lists(st.sampled_from(fields), max_size=4, unique=True))
    document: dict[str, Any] = {}
    for field in chosen:
        if field.name:
            document[field.name] = draw(values(field, depth - 1))
        else:
            document |= draw(messages(field.reference, depth - 1))
    return {name: value for name, value in document.items() if value not in ("", [], {}, 0, None)}


def values(field: ProtobufField, depth: int) -> st.SearchStrategy[Any]:
    code = field.code.lstrip("[{")
    if code == "m":
        one = messages(field.reference, depth)
    else:
        one = UNIONS[code](messages(SCHEMA, depth)) if code in UNIONS else VALUES[code]
    if field.code.startswith("["):
        return st.lists(one, min_size=1, max_size=2)
    return st.dictionaries(TEXT, one, min_size=1, max_size=2) if field.code[0] == "{" else one


GENERATED = sorted(
    {
        (kind.api_version, kind.kind): message_of(kind.api_version, kind.kind) or ""
        for kind in BUILTIN.all
    }.items()
)


@given(
    st.sampled_from(GENERATED).flatmap(lambda kind: st.tuples(st.just(kind), messages(kind[1], 5)))
)
def test_generated_objects_are_the_same_after_encoding_and_decoding(
    generated: tuple[tuple[tuple[str, str], str], dict[str, Any]],
) -> None:
    ((api_version, kind), _), document = generated
    whole = {"kind": kind, "apiVersion": api_version, **document}
    assert without_nulls(read_protobuf(encoded(whole))) == without_nulls(whole)
