"""Webhook options of ``reprieve controllers``, and serving the webhooks while it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from extender.config import ConfigError
from extender.validate_spread import PodSpecValidation
from fakeapi.access import MissingExtraError
from fakeapi.controllers.spreading.reception import WebhookEndpoint
from fakeapi.hookserver import (
    CertificateError,
    WebhookCertificate,
    WebhookServer,
    generate_certificate,
    read_certificate,
)


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
    webhook_address: WebhookAddress, check_pod: PodSpecValidation
) -> AsyncIterator[ServedWebhooks]:
    """Serve webhooks until the block ends. Raises ConfigError."""
    try:
        server = WebhookServer(_load_certificate(webhook_address), webhook_address.url)
        address = await server.start(webhook_address.host, webhook_address.port)
    except CertificateError as error:
        raise ConfigError(f"--webhook-certs: {error}") from None
    except MissingExtraError as error:
        raise ConfigError(f"--webhook-port: {error}") from None
    except OSError as error:
        raise ConfigError(
            f"--webhook-port: {webhook_address.port}: {error.strerror or error}"
        ) from None
    try:
        yield ServedWebhooks(address, server.endpoint(check_pod))
    finally:
        await server.stop()


def _load_certificate(webhook_address: WebhookAddress) -> WebhookCertificate:
    if webhook_address.certificates is None:
        return generate_certificate(webhook_address.host, webhook_address.url)
    return read_certificate(webhook_address.certificates)
