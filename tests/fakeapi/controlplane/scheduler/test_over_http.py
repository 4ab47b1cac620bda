"""Extenders over real sockets: HTTP, HTTPS, and connections that fail."""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from extender.secure_serving.self_signed import CertificateAuthority
from fakeapi import FakeCluster
from fakeapi.apiserver.wire.http_messages import ADMIN_USER
from fakeapi.controlplane.scheduler.configuration import TlsConfig, plain_extender
from fakeapi.controlplane.scheduler.extender_http import tls_context
from fakeapi.controlplane.scheduler.extender_trace import ExtenderCall, ExtenderOutcome
from fakeapi.controlplane.scheduler.options import UnansweredError
from tests.builders import Document
from tests.fakeapi.controlplane.scheduler.stages import configured, node, pod
from tests.fakeapi.webhook_server import serving

Serve = Callable[[Callable[[web.Request], Awaitable[web.StreamResponse]]], Awaitable[str]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Serve extenders over HTTP; they end with the test."""
    servers = []

    async def start(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> str:
        app = web.Application()
        app.router.add_post("/{path:.*}", handler)
        server = TestServer(app)
        await server.start_server()
        servers.append(server)
        return str(server.make_url("/ext"))

    yield start
    for server in servers:
        await server.close()


async def first_call(cluster: FakeCluster) -> ExtenderCall:
    """Create a node and a pod; return the first call of an extender."""
    cluster.load([node("a"), pod("p")])
    await cluster.scheduler.trace.reached(1)
    [call, *_] = cluster.scheduler.trace
    return call


async def test_an_extender_is_called_over_http(serve: Serve) -> None:
    heads = []

    async def handle(request: web.Request) -> web.Response:
        asked = await request.json()
        heads.append((request.path, request.headers["Content-Type"]))
        return web.json_response({"NodeNames": asked["NodeNames"]})

    url = await serve(handle)
    async with FakeCluster(run="scheduler", extender=f"{url}/") as cluster:
        call = await first_call(cluster)
        assert heads == [("/ext/filter", "application/json")]
        assert call.verdict is ExtenderOutcome.ACCEPTED


async def test_a_refused_connection_is_an_error_in_go_s_words(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    async with FakeCluster(run="scheduler", extender=url) as cluster:
        call = await first_call(cluster)
    refused = f"dial tcp 127.0.0.1:{unused_tcp_port}: connect: connection refused"
    assert call.problem == f'Post "{url}/filter": {refused}'
    assert (call.status, call.verdict) == (0, ExtenderOutcome.FAILED)


async def test_an_aborted_connection_is_an_error(serve: Serve) -> None:
    async def handle(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    url = await serve(handle)
    async with FakeCluster(run="scheduler", extender=url) as cluster:
        call = await first_call(cluster)
        assert call.problem == f'Post "{url}/filter": EOF'


async def accept_all(request: web.BaseRequest) -> web.Response:
    """Accept every node."""
    asked = await request.json()
    return web.json_response({"NodeNames": asked["NodeNames"]})


TRUST: dict[str, tuple[Document, str]] = {
    "HTTPS without an authority is not verified": ({"enableHTTPS": True}, ""),
    "insecure HTTPS is not verified": ({"tlsConfig": {"insecure": True}}, ""),
    "an authority of its own": ({"tlsConfig": {"caData": "…"}}, ""),
    "the authorities of the system": ({}, "tls: failed to verify certificate: x509: "),
    "an invalid authority": ({"tlsConfig": {"caData": "bm9uZQ=="}}, "tls: "),
    "another server name": (
        {"tlsConfig": {"caData": "…", "serverName": "other.example"}},
        "tls: failed to verify certificate: x509: ",
    ),
}


@pytest.mark.parametrize("name", TRUST)
async def test_certificates_are_verified(name: str) -> None:
    entry, problem = TRUST[name]
    async with serving(accept_all) as server:
        tls = entry.get("tlsConfig", {})
        if tls.get("caData") == "…":
            entry = {**entry, "tlsConfig": {**tls, "caData": server.ca_bundle}}
        url = server.url
        config = configured({"urlPrefix": url, **entry})
        async with FakeCluster(run="scheduler", scheduler=config) as cluster:
            found = (await first_call(cluster)).problem
    assert found.startswith(f'Post "{url}/filter": {problem}') if problem else not found


async def test_a_client_certificate_is_sent(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    pair = authority.issue_client(ADMIN_USER.name, ADMIN_USER.groups)
    files = {"certFile": tmp_path / "cert", "keyFile": tmp_path / "key"}
    files["certFile"].write_bytes(pair.certificate)
    files["keyFile"].write_bytes(pair.key)
    data = {
        "certData": b64encode(pair.certificate).decode(),
        "keyData": b64encode(pair.key).decode(),
    }
    for shown in ({name: str(path) for name, path in files.items()}, data):
        tls = msgspec.convert({"insecure": True, **shown}, TlsConfig)
        assert tls_context(plain_extender("https://x"), tls) is None
        extender = msgspec.structs.replace(plain_extender("https://x"), tls_config=tls)
        assert isinstance(tls_context(extender, tls), ssl.SSLContext)
    broken = msgspec.convert({"certData": "bm9uZQ==", "keyData": "bm9uZQ=="}, TlsConfig)
    extender = msgspec.structs.replace(plain_extender("https://x"), tls_config=broken)
    with pytest.raises(UnansweredError, match="tls: "):
        tls_context(extender, broken)
