"""OpenAPI v2: one document of all kinds, in JSON and in protobuf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from fakeapi.apiserver.discovery.openapi_v2 import swagger
from fakeapi.apiserver.endpoints import Api, Response
from tests.builders import Document
from tests.fakeapi.api_requests import Ask, send

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
STRING: Document = {"type": "string"}


def fetch(api: Api, accept: str = "", etag: str = "") -> Response:
    return send(api, "GET", "/openapi/v2", accept=accept, if_none_match=etag)


def document(api: Api) -> Document:
    parsed: Document = orjson.loads(fetch(api).body)
    return parsed


def references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from references(each)
    elif isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from references(each)


def test_the_document_defines_everything_that_it_refers_to(api: Api) -> None:
    described = document(api)
    named = {f"#/definitions/{name}" for name in described["definitions"]}
    assert set(references(described)) <= named
    assert "/api/v1/namespaces/{namespace}/pods" in described["paths"]
    pod = described["definitions"]["io.k8s.api.core.v1.Pod"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "kind": "Pod", "version": "v1"}]
    metadata = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    assert pod["properties"]["metadata"]["$ref"] == f"#/definitions/{metadata}"


def test_a_body_is_a_parameter(api: Api) -> None:
    pods = document(api)["paths"]["/api/v1/namespaces/{namespace}/pods"]
    body = pods["post"]["parameters"][0]
    assert body == {
        "name": "body",
        "in": "body",
        "required": True,
        "schema": {"$ref": "#/definitions/io.k8s.api.core.v1.Pod"},
    }
    assert [each["name"] for each in pods["parameters"]] == ["namespace", "pretty"]
    assert pods["get"]["produces"] == ["application/json", "application/yaml"]


def test_an_unchanged_document_is_not_sent_again(api: Api, ask: Ask) -> None:
    etag = fetch(api).headers["ETag"]
    assert fetch(api, etag=etag).status == 304
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    body = {"metadata": {"name": "widgets.example.com"}, "spec": spec}
    assert ask("POST", DEFINITIONS, body)[0] == 201
    assert fetch(api, etag=etag).status == 200
    assert "com.example.v1.Widget" in document(api)["definitions"]


@pytest.mark.parametrize(
    ("schema", "converted"),
    [
        (
            {"allOf": [{"$ref": "#/components/schemas/a.B"}], "description": "d", "default": {}},
            {"$ref": "#/definitions/a.B", "description": "d"},
        ),
        ({**STRING, "default": "x", "maxLength": 3}, {**STRING, "maxLength": 3}),
        ({**STRING, "nullable": True, "maxLength": 3}, {"maxLength": 3}),
        (
            {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, STRING]},
            {"x-kubernetes-int-or-string": True},
        ),
        (
            {
                "type": "object",
                "properties": {"a": STRING},
                "x-kubernetes-preserve-unknown-fields": True,
            },
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            {
                "type": "object",
                "properties": {"a": STRING},
                "x-kubernetes-preserve-unknown-fields": True,
                "x-kubernetes-group-version-kind": [],
            },
            {"type": "object", "x-kubernetes-group-version-kind": []},
        ),
        (
            {
                "type": "object",
                "properties": {"a": {**STRING, "nullable": True}, "b": STRING},
                "required": ["a", "b"],
            },
            {"type": "object", "properties": {"a": {}, "b": STRING}, "required": ["b"]},
        ),
        (
            {"type": "array", "items": {**STRING, "oneOf": [STRING]}},
            {"type": "array", "items": STRING},
        ),
    ],
    ids=[
        "reference",
        "default",
        "nullable",
        "int-or-string",
        "unknown fields",
        "a kind with unknown fields",
        "required",
        "items",
    ],
)
def test_a_schema_is_converted(schema: Document, converted: Document) -> None:
    assert swagger("v1.37.0", {}, {"a.A": schema})["definitions"] == {"a.A": converted}


def read_fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield the numbers and values of the fields of a protobuf message."""
    position = 0

    def varint() -> int:
        nonlocal position
        number = shift = 0
        while True:
            byte = data[position]
            position += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    while position < len(data):
        key = varint()
        length = {0: 0, 1: 8, 2: 0}[key & 7]
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        length = length or varint()
        yield key >> 3, data[position : position + length]
        position += length


def read(data: bytes | int, number: int) -> list[Any]:
    assert isinstance(data, bytes)
    return [value for each, value in read_fields(data) if each == number]


def read_schema(data: bytes) -> Document:
    """Return the reference, description, type, format, enum and fields of an encoded schema."""
    texts = {"$ref": 1, "format": 2, "description": 4}
    schema = {name: read(data, n)[0].decode() for name, n in texts.items() if read(data, n)}
    for kind in read(data, 22):
        schema["type"] = read(kind, 1)[0].decode()
    if enum := read(data, 20):
        schema["enum"] = [orjson.loads(read(value, 2)[0]) for value in enum]
    for fields in read(data, 25):
        schema["properties"] = read_named(fields, 1)
    return schema


def read_named(data: bytes, number: int) -> Document:
    return {
        read(entry, 1)[0].decode(): read_schema(read(entry, 2)[0]) for entry in read(data, number)
    }


def reduced(schema: Document) -> Document:
    kept: Document = {
        name: schema[name]
        for name in ("$ref", "format", "description", "type", "enum")
        if name in schema
    }
    if "properties" in schema:
        fields = schema["properties"].items()
        kept["properties"] = {name: reduced(field) for name, field in fields}
    return kept


def test_the_protobuf_document_has_the_same_definitions(api: Api) -> None:
    answer = fetch(api, PROTOBUF)
    assert answer.content_type == PROTOBUF.replace("@", ".")
    assert read(answer.body, 1) == [b"2.0"]
    [definitions] = read(answer.body, 9)
    expected = document(api)["definitions"].items()
    assert read_named(definitions, 1) == {name: reduced(schema) for name, schema in expected}
    [paths] = read(answer.body, 8)
    assert [read(item, 1)[0].decode() for item in read(paths, 2)] == list(document(api)["paths"])
