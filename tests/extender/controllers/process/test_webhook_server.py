"""Webhooks behind a socket: certificates, and the answer for each client."""

from __future__ import annotations

import ssl
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest

from extender.controllers.process.webhook_server import (
    MAX_REVIEW_BYTES,
    WebhookCertificate,
    WebhookCertificateError,
    WebhookServer,
    generate_certificate,
    read_certificate,
)
from extender.controllers.webhooks.admission_review import ReviewError
from extender.controllers.webhooks.webhook_endpoint import Handlers
from fakeapi.apiserver.validation.object_validation import pod_spec_errors


async def echo(body: bytes) -> bytes:
    return body


async def refuse(_: bytes) -> bytes:
    raise ReviewError("AdmissionReview: request: expected object")


async def fail(_: bytes) -> bytes:
    raise RuntimeError("broken")


HANDLERS: Handlers = {"/echo": echo, "/refuse": refuse, "/fail": fail}


@asynccontextmanager
async def serving(
    identity: WebhookCertificate, handlers: Handlers = HANDLERS
) -> AsyncIterator[tuple[WebhookServer, aiohttp.ClientSession]]:
    server = WebhookServer(identity)
    await server.start("127.0.0.1", 0)
    endpoint = server.endpoint(pod_spec_errors)
    detach = endpoint.serve(handlers)
    config = endpoint.client_config("/echo")
    context = ssl.create_default_context(cadata=b64decode(config["caBundle"]).decode())
    connector = aiohttp.TCPConnector(ssl=context)
    try:
        async with aiohttp.ClientSession(server.url, connector=connector) as session:
            yield server, session
    finally:
        detach()
        await server.stop()


async def post(session: aiohttp.ClientSession, path: str, body: bytes = b"{}") -> tuple[int, str]:
    async with session.post(path, data=BytesIO(body)) as answer:
        return answer.status, (await answer.text()).rstrip()


RESPONSES = [
    ("/echo", b"{}", 200, "{}"),
    ("/refuse", b"{}", 400, "AdmissionReview: request: expected object"),
    ("/fail", b"{}", 500, "RuntimeError: broken"),
    ("/elsewhere", b"{}", 404, "/elsewhere: expected one of /echo, /refuse, /fail"),
    ("/echo", b"x" * (MAX_REVIEW_BYTES + 1), 413, f"expected at most {MAX_REVIEW_BYTES} bytes"),
]


@pytest.mark.parametrize(
    ("path", "body", "status", "text"), RESPONSES, ids=[str(each[2]) for each in RESPONSES]
)
async def test_requests_get_a_response(path: str, body: bytes, status: int, text: str) -> None:
    async with serving(generate_certificate("127.0.0.1")) as (_, session):
        assert await post(session, path, body) == (status, text)


async def test_other_methods_are_refused() -> None:
    async with (
        serving(generate_certificate("127.0.0.1")) as (_, session),
        session.get("/echo") as answer,
    ):
        assert answer.status == 405


async def test_the_response_without_handlers_is_503() -> None:
    async with serving(generate_certificate("127.0.0.1"), {}) as (_, session):
        assert await post(session, "/echo") == (503, "webhooks are starting or stopping")


async def test_a_certificate_is_read_from_a_directory(tmp_path: Path) -> None:
    made = generate_certificate("127.0.0.1")
    for name, content in (
        ("tls.crt", made.certificate),
        ("tls.key", made.key),
        ("ca.crt", made.ca_certificate),
    ):
        (tmp_path / name).write_bytes(content)
    assert read_certificate(tmp_path) == made
    async with serving(read_certificate(tmp_path)) as (_, session):
        assert await post(session, "/echo") == (200, "{}")


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "tls.crt").write_bytes(b"x")
    with pytest.raises(WebhookCertificateError, match=r"tls\.key: No such file"):
        read_certificate(tmp_path)


async def test_an_invalid_certificate_is_reported() -> None:
    with pytest.raises(WebhookCertificateError, match=r"tls\.crt, tls\.key: "):
        await WebhookServer(WebhookCertificate(b"x", b"y", b"z")).start("127.0.0.1", 0)


async def test_the_url_may_differ_from_the_address() -> None:
    url = "https://hooks.example.org:8443/"
    server = WebhookServer(generate_certificate("127.0.0.1", url), url)
    address = await server.start("127.0.0.1", 0)
    try:
        config = server.endpoint(pod_spec_errors).client_config("/convert")
        assert config["url"] == "https://hooks.example.org:8443/convert"
        assert address.startswith("https://127.0.0.1:")
    finally:
        await server.stop()
