"""Compression of large answers, and 304 for cached ones."""

from __future__ import annotations

import asyncio
import zlib
from typing import Any

import aiohttp
import orjson
import pytest

from fakeapi import FakeCluster
from fakeapi.apiserver.watch.list_pages import PIECE
from tests.builders import manifest

GZIP = 16 + zlib.MAX_WBITS
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def config_map_of_size(name: str, size: int) -> dict[str, Any]:
    return manifest("ConfigMap", name, data={"text": "x" * size})


async def fetch(cluster: FakeCluster, path: str, **headers: str) -> tuple[int, Any, bytes]:
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.get(cluster.url + path, headers=headers) as answer,
    ):
        return answer.status, answer.headers, await answer.read()


@pytest.mark.parametrize(
    ("size", "accepted", "encoding"),
    [
        (200_000, "gzip", "gzip"),
        (200_000, "deflate, gzip", "gzip"),
        (200_000, "identity", None),
        (1_000, "gzip", None),
    ],
)
async def test_large_answers_are_compressed_for_clients_that_can_read_them(
    cluster: FakeCluster, size: int, accepted: str, encoding: str | None
) -> None:
    cluster.load([config_map_of_size("a", size)])
    path = "/api/v1/namespaces/default/configmaps/a"
    status, headers, body = await fetch(cluster, path, **{"Accept-Encoding": accepted})
    assert (status, headers.get("Content-Encoding")) == (200, encoding)
    assert ("Accept-Encoding" in headers.get("Vary", "")) is (encoding == "gzip")
    plain = zlib.decompress(body, GZIP) if encoding else body
    assert orjson.loads(plain)["data"]["text"] == "x" * size
    assert int(headers["Content-Length"]) == len(body)


@pytest.mark.parametrize(
    ("path", "accepted", "count"),
    [
        ("/api/v1/namespaces/default/configmaps", "gzip", PIECE + 1),
        ("/api/v1/namespaces/default/configmaps", "identity", 2 * PIECE + 1),
        ("/_fakeapi/export", "gzip", PIECE + 1),
        ("/_fakeapi/export", "identity", PIECE),
    ],
)
async def test_a_large_list_is_sent_in_pieces(
    cluster: FakeCluster, path: str, accepted: str, count: int
) -> None:
    cluster.load(config_map_of_size(f"map-{index:04}", 20) for index in range(count))
    _, headers, body = await fetch(cluster, path, **{"Accept-Encoding": accepted})
    plain = zlib.decompress(body, GZIP) if headers.get("Content-Encoding") else body
    found = [each["metadata"]["name"] for each in orjson.loads(plain)["items"]]
    assert found[-count:] == [f"map-{index:04}" for index in range(count)]
    assert ("Content-Encoding" in headers) is (accepted == "gzip")


async def test_others_are_served_while_an_answer_is_compressed(cluster: FakeCluster) -> None:
    cluster.load([config_map_of_size(f"m{number}", 900_000) for number in range(20)])
    large = fetch(cluster, "/api/v1/configmaps", **{"Accept-Encoding": "gzip"})
    (_, _, body), (_, _, health) = await asyncio.gather(large, fetch(cluster, "/livez"))
    assert len(orjson.loads(zlib.decompress(body, GZIP))["items"]) == 20
    assert health == b"ok"


async def test_a_client_with_a_current_cache_gets_no_body(cluster: FakeCluster) -> None:
    status, headers, body = await fetch(cluster, "/apis", Accept=DISCOVERY)
    assert (status, headers["Cache-Control"]) == (200, "public")
    assert body
    known = {"Accept": DISCOVERY, "If-None-Match": headers["ETag"]}
    assert [(await fetch(cluster, "/apis", **known))[part] for part in (0, 2)] == [304, b""]
