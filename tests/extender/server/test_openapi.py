"""The OpenAPI document has every endpoint and the fields of the wire types."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from extender.protocol import extender_results
from extender.server.openapi import ExtenderFilterResult, openapi_document
from tests.builders import node
from tests.extender.conftest import live_cluster, served
from tests.extender.secure_serving.raw_clients import run_listener


async def test_the_document_is_served_and_has_every_path() -> None:
    async with served(live_cluster(node()), path_prefixes=["/scheduler"]) as extender:
        reply = await extender.get("/openapi.json")
    assert reply.status == 200
    assert set(json.loads(reply.text)["paths"]) == {
        *("/filter", "/preempt", "/scheduler/filter", "/scheduler/preempt"),
        *("/", "/livez", "/healthz", "/readyz", "/metrics", "/decisions", "/openapi.json"),
    }


async def test_every_page_has_its_documented_media_type() -> None:
    paths = json.loads(openapi_document())["paths"]
    pages = {path: operations["get"] for path, operations in paths.items() if "get" in operations}
    async with served(live_cluster(node())) as extender:
        replies = {path: await extender.get(path) for path in pages}
    for path, reply in replies.items():
        content = pages[path]["responses"][str(reply.status)]["content"]
        assert reply.headers["Content-Type"].split(";")[0] in content, path


async def test_every_reference_is_defined() -> None:
    written = json.loads(openapi_document())
    references = set[str]()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            references.update([value["$ref"]] if "$ref" in value else [])
            for each in value.values():
                collect(each)
        elif isinstance(value, list):
            for each in value:
                collect(each)

    collect(written)
    known = {f"#/components/schemas/{name}" for name in written["components"]["schemas"]}
    assert references
    assert references <= known


def test_an_overload_response_documents_retry_after() -> None:
    for verb in ("filter", "preempt"):
        response = json.loads(openapi_document())["paths"][f"/{verb}"]["post"]["responses"]["503"]
        assert set(response["headers"]) == {"X-Request-Id", "Retry-After"}


def test_documented_responses_are_the_actual_ones() -> None:
    documented, actual = (
        [field.encode_name for field in msgspec.structs.fields(kind)]
        for kind in (ExtenderFilterResult, extender_results.FilterResult)
    )
    assert documented == actual


@pytest.mark.slow
async def test_a_body_with_a_too_large_length_is_refused_at_once() -> None:
    async with run_listener() as server:
        client = await server.connect()
        await client.send(
            b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"
        )
        assert (await client.answer()).startswith("HTTP/1.1 413 ")
