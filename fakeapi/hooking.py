"""Webhook options of ``reprieve controllers``, and serving the webhooks while it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from extender.config import ConfigError
from extender.validate_spread import PodCheck
from fakeapi.access import MissingExtraError
from fakeapi.controllers.spreading.reception import Reception
from fakeapi.hookserver import (
    CertificateError,
    HookServer,
    Identity,
    made_identity,
    read_identity,
)


@dataclass(frozen=True, slots=True)
class HookPlace:
    """The listen address of webhooks, the URL for API servers, and the certificate directory.

    A ``url`` of "" is the listen address. Without ``certificates`` they are generated.
    """

    host: str
    port: int
    url: str = ""
    certificates: Path | None = None


@dataclass(frozen=True, slots=True)
class Hooked:
    """The base URL at which webhooks are served, and their webhook endpoint."""

    address: str
    reception: Reception


def read_place(host: str, port: int | None, url: str, directory: Path | None) -> HookPlace | None:
    """Read the webhook options; return None if webhooks are not enabled. Raises ConfigError."""
    if port is None:
        if url or directory is not None:
            raise ConfigError("--webhook-url and --webhook-certs need --webhook-port")
        return None
    if url and not url.startswith("https://"):
        raise ConfigError(f"--webhook-url: {url!r}; expected https://HOST[:PORT]")
    return HookPlace(host, port, url, directory)


@asynccontextmanager
async def hooked(place: HookPlace, check_pod: PodCheck) -> AsyncIterator[Hooked]:
    """Serve webhooks until the block ends. Raises ConfigError."""
    try:
        server = HookServer(_identity(place), place.url)
        address = await server.start(place.host, place.port)
    except CertificateError as error:
        raise ConfigError(f"--webhook-certs: {error}") from None
    except MissingExtraError as error:
        raise ConfigError(f"--webhook-port: {error}") from None
    except OSError as error:
        raise ConfigError(f"--webhook-port: {place.port}: {error.strerror or error}") from None
    try:
        yield Hooked(address, server.reception(check_pod))
    finally:
        await server.stop()


def _identity(place: HookPlace) -> Identity:
    if place.certificates is None:
        return made_identity(place.host, place.url)
    return read_identity(place.certificates)
