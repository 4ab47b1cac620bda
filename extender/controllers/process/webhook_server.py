"""HTTPS server of the webhooks, as every API server requires it.

The certificate is generated with an in-memory certificate authority, or read from a directory in
which a TLS Secret is mounted (``tls.crt``, ``tls.key``, and ``ca.crt`` for the API server's
``caBundle``). Use the directory for several processes behind one address.

    POST of a review to a webhook path    200 and the review with its response
    a body that is not a review           400 and the reason
    another path                          404
    no webhooks attached                  503
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from extender.config.strict_decoding import ConfigError
from extender.controllers.webhooks.admission_review import ReviewError
from extender.controllers.webhooks.webhook_endpoint import (
    Detach,
    Document,
    Handlers,
    WebhookEndpoint,
)
from extender.kube.workloadspread.patch_validation import PodSpecValidation
from extender.secure_serving.pem import MissingExtraError, load_chain

if TYPE_CHECKING:
    from extender.secure_serving.self_signed import KeyPair

MAX_REVIEW_BYTES: Final = 16 * 2**20
"""The maximum size of a body, in bytes: about five times the API server's maximum object size."""
BODY_SECONDS: Final = 30.0
IDLE_SECONDS: Final = 90.0
SHUTDOWN_SECONDS: Final = 2.0

_FILES: Final = ("tls.crt", "tls.key", "ca.crt")
_LOCAL: Final = ("127.0.0.1", "localhost", "::1")

_log = structlog.get_logger(__name__)


class WebhookCertificateError(ValueError):
    """A certificate cannot be loaded; the text names the file and the reason."""


@dataclass(frozen=True, slots=True)
class WebhookCertificate:
    """A serving certificate, its key, and the certificate authority's certificate, all PEM."""

    certificate: bytes
    key: bytes
    ca_certificate: bytes


def generate_certificate(host: str, url: str = "") -> WebhookCertificate:
    """Generate a certificate for a server at ``host`` that clients reach under ``url``.

    Raises MissingExtraError.
    """
    try:
        from extender.secure_serving.self_signed import CertificateAuthority
    except ImportError as error:
        raise MissingExtraError(
            f"webhooks need the package {error.name}; install it with: pip install 'reprieve[tls]'"
        ) from None
    authority = CertificateAuthority()
    hosts = (urlsplit(url).hostname or host, host, *_LOCAL)
    pair: KeyPair = authority.issue_server(tuple(dict.fromkeys(hosts)))
    return WebhookCertificate(pair.certificate, pair.key, authority.certificate)


def read_certificate(directory: Path) -> WebhookCertificate:
    """Read certificate, key and CA from a directory. Raises WebhookCertificateError."""
    found = []
    for name in _FILES:
        try:
            found.append((directory / name).read_bytes())
        except OSError as error:
            message = f"{directory / name}: {error.strerror or error}"
            raise WebhookCertificateError(message) from None
    return WebhookCertificate(*found)


class WebhookServer:
    """An HTTPS server for webhooks; ``url`` is its base URL for API servers, by default its own."""

    def __init__(self, certificate: WebhookCertificate, url: str = "") -> None:
        self._certificate = certificate
        self._handlers: Handlers = {}
        self._runner: web.ServerRunner | None = None
        self.url = url.rstrip("/")

    async def start(self, host: str, port: int) -> str:
        """Listen and return the local base URL. Raises OSError, WebhookCertificateError."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            load_chain(context, self._certificate.key + self._certificate.certificate)
        except ssl.SSLError as error:
            raise WebhookCertificateError(f"tls.crt, tls.key: {error.reason or error}") from None
        server = web.Server(
            self._serve,
            access_log=None,
            handler_cancellation=True,  # no review for a client that has disconnected
            keepalive_timeout=IDLE_SECONDS,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_SECONDS)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port, ssl_context=context).start()
        named = f"[{host}]" if ":" in host else host
        address = f"https://{named}:{self._runner.addresses[0][1]}"
        self.url = self.url or address
        return address

    async def stop(self) -> None:
        """Finish pending requests and stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    def endpoint(self, check_pod: PodSpecValidation) -> WebhookEndpoint:
        """Return this server as a webhook endpoint."""
        return WebhookEndpoint(self._client_config, self._attach, check_pod)

    def _client_config(self, path: str) -> Document:
        bundle = b64encode(self._certificate.ca_certificate).decode()
        return {"url": f"{self.url}{path}", "caBundle": bundle}

    def _attach(self, handlers: Handlers) -> Detach:
        self._handlers = handlers

        def detach() -> None:
            self._handlers = {}

        return detach

    async def _serve(self, request: web.BaseRequest) -> web.Response:
        handler = self._handlers.get(request.path)
        if not self._handlers:
            return _error_response(503, "webhooks are starting or stopping")
        if handler is None:
            expected = ", ".join(self._handlers)
            return _error_response(404, f"{request.path}: expected one of {expected}")
        if request.method != "POST":
            return _error_response(405, f"{request.method}: expected POST")
        try:
            answer = await handler(await _body(request))
        except ReviewError as error:
            return _error_response(400, str(error))
        except BodyTooLargeError:
            return _error_response(413, f"expected at most {MAX_REVIEW_BYTES} bytes")
        except TimeoutError:
            return _error_response(408, f"expected the whole body within {BODY_SECONDS:g} s")
        except Exception as error:  # noqa: BLE001 - the outermost loop: one review fails, not all
            _log.exception("webhook_failed", path=request.path)
            return _error_response(500, f"{type(error).__name__}: {error}")
        return web.Response(body=answer, content_type="application/json")


class BodyTooLargeError(Exception):
    """A body exceeds the maximum size."""


async def _body(request: web.BaseRequest) -> bytes:
    body = bytearray()
    async with asyncio.timeout(BODY_SECONDS):
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > MAX_REVIEW_BYTES:
                raise BodyTooLargeError
    return bytes(body)


def _error_response(status: int, reason: str) -> web.Response:
    return web.Response(status=status, text=f"{reason}\n")


@dataclass(frozen=True, slots=True)
class WebhookAddress:
    """The listen address of webhooks, the URL for API servers, and the certificate directory.

    A ``url`` of "" is the listen address. Without ``certificates`` they are generated.
    """

    host: str
    port: int
    url: str = ""
    certificates: Path | None = None


@dataclass(frozen=True, slots=True)
class ServedWebhooks:
    """The base URL at which webhooks are served, and their webhook endpoint."""

    address: str
    endpoint: WebhookEndpoint


def read_webhook_address(
    host: str, port: int | None, url: str, directory: Path | None
) -> WebhookAddress | None:
    """Read the webhook options; return None if webhooks are not enabled. Raises ConfigError."""
    if port is None:
        if url or directory is not None:
            raise ConfigError("--webhook-url and --webhook-certs need --webhook-port")
        return None
    if url and not url.startswith("https://"):
        raise ConfigError(f"--webhook-url: {url!r}; expected https://HOST[:PORT]")
    return WebhookAddress(host, port, url, directory)


@asynccontextmanager
async def serve_webhooks(
    address: WebhookAddress, check_pod: PodSpecValidation
) -> AsyncIterator[ServedWebhooks]:
    """Serve webhooks until the block ends. Raises ConfigError."""
    try:
        server = WebhookServer(_load_certificate(address), address.url)
        base_url = await server.start(address.host, address.port)
    except WebhookCertificateError as error:
        raise ConfigError(f"--webhook-certs: {error}") from None
    except MissingExtraError as error:
        raise ConfigError(f"--webhook-port: {error}") from None
    except OSError as error:
        raise ConfigError(f"--webhook-port: {address.port}: {error.strerror or error}") from None
    try:
        yield ServedWebhooks(base_url, server.endpoint(check_pod))
    finally:
        await server.stop()


def _load_certificate(address: WebhookAddress) -> WebhookCertificate:
    if address.certificates is None:
        return generate_certificate(address.host, address.url)
    return read_certificate(address.certificates)
