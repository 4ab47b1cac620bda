"""Webhooks over HTTPS, called by a served cluster; and the order of calls."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from copy import deepcopy
from typing import Any

import aiohttp
import orjson
import pytest

from extender.kube.rest.clock import SystemClock
from fakeapi import FakeCluster
from fakeapi.apiserver.endpoints import Api, Request, Response
from fakeapi.apiserver.serving.client_access import Tls, create_tls
from fakeapi.apiserver.webhooks.calls import WebhookCall, WebhookCallError
from fakeapi.apiserver.webhooks.client import CallDispatcher, post_once
from tests.builders import Document, manifest
from tests.builders.definitions import WIDGETS, widget
from tests.fakeapi.api_requests import MERGE
from tests.fakeapi.apiserver.schema.crds.webhooks import converted, renamed, serving

WIDGETS_V2 = WIDGETS.replace("/v1/", "/v2/")
SERVICE = manifest(
    "Service",
    "hook",
    namespace="shop",
    spec={"ports": [{"name": "https", "port": 443, "targetPort": 8443}]},
)
SLICE = manifest(
    "EndpointSlice",
    "hook-1",
    version="discovery.k8s.io/v1",
    namespace="shop",
    metadata={"labels": {"kubernetes.io/service-name": "hook"}},
    addressType="IPv4",
    ports=[{"name": "https", "port": 8443, "protocol": "TCP"}],
    endpoints=[
        {"addresses": ["10.0.0.1"], "conditions": {"ready": False}},
        {"addresses": ["10.0.0.2"], "conditions": {"ready": True}},
    ],
)
BEHIND = {"service": {"name": "hook", "namespace": "shop", "path": "/convert"}}


@pytest.fixture
def tls() -> Tls:
    return create_tls("127.0.0.1")


@pytest.fixture
async def port(tls: Tls) -> AsyncIterator[int]:
    async with serving(tls.server) as port:
        yield port


@pytest.fixture
async def http(cluster: FakeCluster) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cluster.url) as session:
        yield session


def define(cluster: FakeCluster, port: int, certificate: bytes) -> None:
    bundle = b64encode(certificate).decode()
    cluster.load([converted(url=f"https://127.0.0.1:{port}/convert", caBundle=bundle)])


async def test_objects_are_converted_as_they_are_written_read_and_watched(
    cluster: FakeCluster, http: aiohttp.ClientSession, tls: Tls, port: int
) -> None:
    define(cluster, port, tls.authority.certificate)
    async with http.post(WIDGETS_V2, json=widget(api_version="v2", length=1)) as answer:
        assert answer.status == 201
    async with http.get(WIDGETS) as answer:
        [one] = (await answer.json())["items"]
        assert one["spec"] == {"size": 1}
    async with http.get(WIDGETS_V2, params={"watch": "1"}) as answer:
        frame = orjson.loads(await answer.content.readline())
        assert frame["object"]["spec"] == {"length": 1, "color": "red"}
        change, merge = b'{"spec":{"size":2}}', {"Content-Type": MERGE}
        async with http.patch(f"{WIDGETS}/one", data=change, headers=merge) as changed:
            assert changed.status == 200
        frame = orjson.loads(await answer.content.readline())
        assert frame["object"]["spec"] == {"length": 2, "color": "red"}


async def test_a_certificate_outside_the_ca_bundle_is_refused(
    cluster: FakeCluster, http: aiohttp.ClientSession, port: int
) -> None:
    define(cluster, port, create_tls("127.0.0.1").authority.certificate)
    async with http.post(WIDGETS_V2, json=widget(api_version="v2")) as answer:
        assert answer.status == 500
        message = (await answer.json())["message"]
    assert message == (
        "conversion webhook for example.com/v2, Kind=Widget failed: "
        f'Post "https://127.0.0.1:{port}/convert?timeout=30s": '
        "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    )


async def test_the_ca_bundle_may_be_the_servers_own_certificate(
    cluster: FakeCluster, http: aiohttp.ClientSession, port: int
) -> None:
    leaf = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))
    define(cluster, port, leaf.encode())
    async with http.post(WIDGETS_V2, json=widget(api_version="v2")) as answer:
        assert answer.status == 201


async def test_a_refused_connection_is_an_error(tls: Tls) -> None:
    async with serving(tls.server) as port:
        pass
    with pytest.raises(WebhookCallError, match=rf"dial tcp 127.0.0.1:{port}: connect: connection"):
        await post_once(WebhookCall(f"https://127.0.0.1:{port}/", b"{}", tls.authority.certificate))


async def test_a_missing_path_is_an_error(tls: Tls, port: int) -> None:
    call = WebhookCall(f"https://127.0.0.1:{port}/elsewhere", b"{}", tls.authority.certificate)
    with pytest.raises(WebhookCallError, match="the server could not find the requested resource"):
        await post_once(call)


async def test_an_invalid_bundle_is_an_error() -> None:
    with pytest.raises(WebhookCallError, match="unable to parse bytes as PEM block"):
        await post_once(WebhookCall("https://127.0.0.1:1/", b"{}", b"certificate"))


async def asked(api: Api, *documents: Document) -> tuple[list[WebhookCall], Any]:
    """Load objects and create a widget in v2; return the webhook calls and the answer."""
    api.load(deepcopy(documents))
    calls: list[WebhookCall] = []

    async def send(call: WebhookCall) -> bytes:
        calls.append(call)
        return orjson.dumps(renamed(orjson.loads(call.body)))

    body = orjson.dumps(widget(api_version="v2", length=1))
    request = Request("POST", WIDGETS_V2, {}, body)
    answer = await CallDispatcher(api.pending_calls, send, SystemClock()).run(
        lambda: api.handle(request)
    )
    assert isinstance(answer, Response)
    return calls, orjson.loads(answer.body)


async def test_a_service_leads_to_a_ready_endpoint(api: Api) -> None:
    calls, made = await asked(api, SERVICE, SLICE, converted(**BEHIND))
    assert made["spec"] == {"length": 1, "color": "red"}
    assert {(call.url, call.host) for call in calls} == {
        ("https://10.0.0.2:8443/convert?timeout=30s", "hook.shop.svc")
    }


async def test_a_service_leads_to_addresses_of_the_old_kind(api: Api) -> None:
    subset = {"addresses": [{"ip": "fd00::1"}], "ports": [{"name": "https", "port": 8443}]}
    endpoints = manifest("Endpoints", "hook", namespace="shop", subsets=[subset])
    calls, _ = await asked(api, SERVICE, endpoints, converted(**BEHIND))
    assert calls[0].url == "https://[fd00::1]:8443/convert?timeout=30s"


async def test_a_service_may_have_an_external_name(api: Api) -> None:
    outside = {**SERVICE, "spec": {"type": "ExternalName", "externalName": "hooks.example.org"}}
    calls, _ = await asked(api, outside, converted(**BEHIND))
    assert calls[0].url == "https://hooks.example.org:443/convert?timeout=30s"


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ([], 'service "hook" not found'),
        ([SERVICE], 'no endpoints available for service "hook"'),
        (
            [{**SERVICE, "spec": {"ports": [{"port": 80}]}}],
            'no service port 443 found for service "hook"',
        ),
    ],
)
async def test_a_service_without_endpoints_is_an_error(
    api: Api, documents: list[Document], reason: str
) -> None:
    calls, answer = await asked(api, *documents, converted(**BEHIND))
    assert (calls, answer["code"]) == ([], 500)
    assert answer["message"] == (
        "conversion webhook for example.com/v2, Kind=Widget failed: "
        f'Post "https://hook.shop.svc:443/convert?timeout=30s": {reason}'
    )


async def test_a_second_attempt_repeats_the_first(api: Api) -> None:
    api.load(deepcopy([SERVICE, SLICE, converted(**BEHIND)]))
    uids: set[str] = set()
    attempts = 0

    async def send(call: WebhookCall) -> bytes:
        uids.add(orjson.loads(call.body)["request"]["uid"])
        return orjson.dumps(renamed(orjson.loads(call.body)))

    body = orjson.dumps(widget(api_version="v2", length=1))
    request = Request("POST", WIDGETS_V2, {}, body)

    def attempt() -> Any:
        nonlocal attempts
        attempts += 1
        return api.handle(request)

    before = api.store.version
    await CallDispatcher(api.pending_calls, send, SystemClock()).run(attempt)
    assert attempts == len(uids) + 1
    assert api.store.version == before + 1
