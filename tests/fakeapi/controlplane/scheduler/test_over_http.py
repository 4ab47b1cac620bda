"""Extenders over real sockets: HTTP, HTTPS, and those that are not there."""

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
from fakeapi.controlplane.scheduler.configuration import TlsConfig, UnansweredError, plain_extender
from fakeapi.controlplane.scheduler.extender_http import tls_context
from fakeapi.controlplane.scheduler.extender_trace import ExtenderOutcome
from tests.fakeapi.controlplane.scheduler.stages import Document, configured, node, pod
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


async def test_an_extender_is_asked_over_http(serve: Serve) -> None:
    heads = []

    async def handle(request: web.Request) -> web.Response:
        asked = await request.json()
        heads.append((request.path, request.headers["Content-Type"]))
        return web.json_response({"NodeNames": asked["NodeNames"]})

    url = await serve(handle)
    async with FakeCluster(run="scheduler", extender=f"{url}/") as cluster:
        cluster.load([node("a"), pod("p")])
        await cluster.scheduler.trace.reached(1)
        assert heads == [("/ext/filter", "application/json")]
        assert cluster.scheduler.trace[0].verdict is ExtenderOutcome.ACCEPTED


async def test_one_that_is_not_there_is_an_error_in_go_s_words(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    async with FakeCluster(run="scheduler", extender=url) as cluster:
        cluster.load([node("a"), pod("p")])
        await cluster.scheduler.trace.reached(1)
        [exchange] = cluster.scheduler.trace[:1]
    refused = f"dial tcp 127.0.0.1:{unused_tcp_port}: connect: connection refused"
    assert exchange.problem == f'Post "{url}/filter": {refused}'
    assert (exchange.status, exchange.verdict) == (0, ExtenderOutcome.FAILED)


async def test_one_that_hangs_up_is_an_error(serve: Serve) -> None:
    async def handle(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    url = await serve(handle)
    async with FakeCluster(run="scheduler", extender=url) as cluster:
        cluster.load([node("a"), pod("p")])
        await cluster.scheduler.trace.reached(1)
        assert cluster.scheduler.trace[0].problem == f'Post "{url}/filter": EOF'


async def taking_all(request: web.BaseRequest) -> web.Response:
    """Take every node."""
    asked = await request.json()
    return web.json_response({"NodeNames": asked["NodeNames"]})


TRUST: dict[str, tuple[Document, str]] = {
    "HTTPS without an authority is not checked": ({"enableHTTPS": True}, ""),
    "nor is what is called insecure": ({"tlsConfig": {"insecure": True}}, ""),
    "an authority of its own": ({"tlsConfig": {"caData": "…"}}, ""),
    "the authorities of the system": ({}, "tls: failed to verify certificate: x509: "),
    "no authority at all": ({"tlsConfig": {"caData": "bm9uZQ=="}}, "tls: "),
    "a name that it does not bear": (
        {"tlsConfig": {"caData": "…", "serverName": "other.example"}},
        "tls: failed to verify certificate: x509: ",
    ),
}


@pytest.mark.parametrize("name", TRUST)
async def test_whose_certificate_is_trusted(name: str) -> None:
    entry, problem = TRUST[name]
    async with serving(taking_all) as server:
        tls = entry.get("tlsConfig", {})
        if tls.get("caData") == "…":
            entry = {**entry, "tlsConfig": {**tls, "caData": server.ca_bundle}}
        url = server.url
        config = configured({"urlPrefix": url, **entry})
        async with FakeCluster(run="scheduler", scheduler=config) as cluster:
            cluster.load([node("a"), pod("p")])
            await cluster.scheduler.trace.reached(1)
            told = cluster.scheduler.trace[0].problem
    assert told.startswith(f'Post "{url}/filter": {problem}') if problem else told == ""


async def test_a_certificate_is_shown_if_there_is_one(tmp_path: Path) -> None:
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
